// All-gathers and all-to-alls between windows by copy engines: results, and order with other calls.
#include <gtest/gtest.h>

#include <atomic>

#include "src/base/atomic.h"
#include "tests/communicator/device/device_processes.h"
#include "tests/ptx/copy_engine_calls.h"

namespace tutti::test {
namespace {

Places in_place(const SwitchCall& shape, Rank rank, std::size_t begin) {
  if (shape.collective == Collective::all_to_all) return {begin, begin};
  return {begin + rank * shape.count * size_of(shape.type), begin};
}

std::string run_all(const WindowMemory& window, const Member& member) {
  for (const Collective collective : {Collective::all_gather, Collective::all_to_all}) {
    for (const SwitchCall& call : {SwitchCall{.count = 1003, .collective = collective},
                                   SwitchCall{.type = DataType::uint8, .count = 1, .collective = collective},
                                   SwitchCall{.type = DataType::bfloat16, .count = 77, .collective = collective}}) {
      for (const Places& places : {Places{}, Places{8, kOutputAt + 16}, in_place(call, member.rank, 0),
                                   in_place(call, member.rank, 24), Places{kOutputAt, 0}}) {
        const std::string result = run_in(window, member, call, places, kRequest);
        if (result != "right") return result;
      }
    }
  }
  return "right";
}

// Returns what is wrong with the blocks gathered in `turns` turns, which follow each other; "" if nothing.
std::string check_turns(const std::byte* results, std::uint32_t turns, Rank ranks) {
  for (std::uint32_t turn = 0; turn < turns; ++turn) {
    const std::vector<std::byte> wanted = blocks_of(ranks, turn);
    if (!std::equal(wanted.begin(), wanted.end(), results + turn * ranks * kBlockBytes))
      return "turn " + std::to_string(turn) + " is wrong";
  }
  return "";
}

TEST(CopyEngines, MoveBlocksToTheirPlaces) {
  for (const Rank ranks : {2U, 4U, 8U}) {
    const std::string report = run_members(ranks, [](const Member& member) -> std::string {
      WindowMemory window(member);
      const std::string result = run_all(window, member);
      return result == "right" ? window.withdraw() : result;
    });
    EXPECT_EQ(report, "right") << ranks;
  }
}

// A call is enough to request them, since each rank maps windows of other processes in any case.
TEST(CopyEngines, MoveBlocksBetweenProcesses) {
  constexpr Rank kRanks = 4;
  DeviceProcessGroup processes;
  for (Rank rank = 0; rank < kRanks; ++rank) {
    const auto rig = [=] {
      ::setenv("TUTTI_PTX_DEVICES", "4", 1);
      cudaSetDevice(static_cast<int>(rank));
      return cuda_rig();
    };
    processes.start(rig, rank, 1, kRanks, [](DeviceRanks& own, Rank first) -> std::string {
      std::barrier<> alone(1);
      const Member member = {own, first, kRanks, alone};
      WindowMemory window(member);
      const std::string result = run_all(window, member);
      return result == "right" ? window.withdraw() : result;
    });
  }
  processes.expect_reports("right");
}

// ---- Order ----

// The input of the last rank is written late. The others must not read it before.
TEST(CopyEngines, AwaitInputsOfPeers) {
  const auto work = [](const Member& member) -> std::string {
    const auto& [own, rank, ranks, meet] = member;
    WindowMemory window(member);
    window.write(std::vector<std::byte>(window.bytes(), kOther), 0);
    auto* word = own.take<std::uint32_t>(1);
    const std::byte* input = on_host(member, block_of(rank, 0));
    meet.arrive_and_wait();
    Device& device = own.rig().device();
    if (rank + 1 == ranks && !device.hold_until(word, 1, own.stream(0)).ok()) return "not held";
    if (!device.copy(window.at(0), input, kBlockBytes, own.stream(0)).ok()) return "not copied";
    const DeviceCall call = requested(member, gather_call(window));
    const Status status = enqueue({&call, 1});
    if (!status.ok()) return status.message();
    meet.arrive_and_wait();
    store_release(word, 1U);
    own.synchronize();
    if (own[0].last_run().algorithm != std::string(kRequest)) return "did not use copy engines";
    return window.read(kOutputAt, ranks * kBlockBytes) == blocks_of(ranks, 0) ? window.withdraw() : "read too early";
  };
  EXPECT_EQ(run_members(3, work), "right");
}

// Copies overwrite the inputs directly after each call. The blocks are long, so that the last copies of a peer begin
// late.
TEST(CopyEngines, KeepInputs_UntilPeersHaveReadThem) {
  constexpr std::uint32_t kTurns = 10;
  constexpr std::uint64_t kLong = 512 << 10;
  const auto work = [](const Member& member) -> std::string {
    const auto& [own, rank, ranks, meet] = member;
    WindowMemory window(member, 0, (ranks + 1) * kLong);
    Device& device = own.rig().device();
    std::vector<const std::byte*> inputs;
    for (std::uint32_t turn = 0; turn <= kTurns; ++turn)
      inputs.push_back(on_host(member, std::vector<std::byte>(kLong, static_cast<std::byte>(rank * kTurns + turn))));
    auto* results = own.take<std::byte>(kTurns * ranks * kLong);
    Status status = device.copy(window.at(0), inputs[0], kLong, own.stream(0));
    meet.arrive_and_wait();
    const DeviceCall gather =
        requested(member, call_of(Collective::all_gather, DataType::uint8, kLong, window.at(0), window.at(kLong)));
    for (std::uint32_t turn = 0; turn < kTurns; ++turn) {
      if (status.ok()) status = enqueue({&gather, 1});
      if (status.ok()) status = device.copy(window.at(0), inputs[turn + 1], kLong, own.stream(0));
      if (status.ok())
        status = device.copy(results + turn * ranks * kLong, window.at(kLong), ranks * kLong, own.stream(0));
    }
    if (!status.ok()) return status.message();
    own.synchronize();
    for (std::uint32_t turn = 0; turn < kTurns; ++turn) {
      for (Rank peer = 0; peer < ranks; ++peer) {
        const std::byte* block = results + (turn * ranks + peer) * kLong;
        if (std::count(block, block + kLong, static_cast<std::byte>(peer * kTurns + turn)) != kLong)
          return "turn " + std::to_string(turn) + ", block " + std::to_string(peer);
      }
    }
    meet.arrive_and_wait();
    return window.withdraw();
  };
  EXPECT_EQ(run_members(6, work), "right");
}

// Sums by kernels overwrite the inputs of calls by copy engines, and read their outputs, in two streams.
TEST(CopyEngines, RunInOrderWithKernels) {
  constexpr std::uint32_t kTurns = 40;
  constexpr std::size_t kCopyAt = kOutputAt / 2;
  const auto work = [](const Member& member) -> std::string {
    const auto& [own, rank, ranks, meet] = member;
    WindowMemory window(member);
    Device& device = own.rig().device();
    const DeviceStream other = own.rig().make_stream();
    std::vector<const std::byte*> inputs;
    for (std::uint32_t turn = 0; turn < kTurns; ++turn) inputs.push_back(on_host(member, block_of(rank, turn)));
    auto* results = own.take<std::byte>(kTurns * ranks * kBlockBytes);
    meet.arrive_and_wait();
    for (std::uint32_t turn = 0; turn < kTurns; ++turn) {
      Status status = device.copy(window.at(0), inputs[turn], kBlockBytes, own.stream(0));
      DeviceCall gather = requested(member, gather_call(window));
      if (status.ok()) status = enqueue({&gather, 1});
      // Its inputs are all zero. Its outputs are the inputs before.
      DeviceCall clear = requested(
          member, call_of(Collective::all_reduce, DataType::uint8, kBlockBytes, window.at(kCopyAt), window.at(0)));
      clear.stream = turn % 2 == 0 ? own.stream(0) : other;
      if (status.ok()) status = enqueue({&clear, 1});
      if (status.ok())
        status =
            device.copy(results + turn * ranks * kBlockBytes, window.at(kOutputAt), ranks * kBlockBytes, own.stream(0));
      gather.call = gather_call(window, kCopyAt);  // After the sum, whose stream may be the other one.
      if (status.ok()) status = enqueue({&gather, 1});
      if (!status.ok()) return status.message();
    }
    own.synchronize();
    (void)own.rig().synchronize(other);
    own.rig().destroy_stream(other);
    const std::string found = check_turns(results, kTurns, ranks);
    if (!found.empty()) return found;
    meet.arrive_and_wait();
    return window.withdraw();
  };
  EXPECT_EQ(run_members(4, work), "right");
}

// The call is ordered with the stream's work before and after it. Copies between devices do not run in the legacy
// stream, where they would wait for the peers' launches, which wait for this rank.
std::string run_in_stream(DeviceStream stream) {
  constexpr std::uint32_t kTurns = 5;
  const auto work = [=](const Member& member) -> std::string {
    const auto& [own, rank, ranks, meet] = member;
    WindowMemory window(member);
    Device& device = own.rig().device();
    DeviceCall gather = requested(member, gather_call(window));
    gather.stream = stream;
    std::vector<const std::byte*> inputs;
    for (std::uint32_t turn = 0; turn < kTurns; ++turn) inputs.push_back(on_host(member, block_of(rank, turn)));
    auto* results = own.take<std::byte>(kTurns * ranks * kBlockBytes);
    meet.arrive_and_wait();
    for (std::uint32_t turn = 0; turn < kTurns; ++turn) {
      Status status = device.copy(window.at(0), inputs[turn], kBlockBytes, stream);
      if (status.ok()) status = enqueue({&gather, 1});
      if (status.ok())
        status = device.copy(results + turn * ranks * kBlockBytes, window.at(kOutputAt), ranks * kBlockBytes, stream);
      if (!status.ok()) return status.message();
    }
    (void)own.rig().synchronize(stream);
    const std::string found = check_turns(results, kTurns, ranks);
    if (!found.empty()) return found;
    meet.arrive_and_wait();
    return window.withdraw();
  };
  return run_members(3, work);
}

TEST(CopyEngines, RunInDefaultStreams) {
  for (const cudaStream_t stream : {cudaStream_t(), cudaStreamLegacy, cudaStreamPerThread})
    EXPECT_EQ(run_in_stream(stream), "right") << stream;
}

// Replays with new inputs, and a call without the graph between them.
TEST(CopyEngines, RunInGraphs) {
  const auto work = [](const Member& member) -> std::string {
    const auto& [own, rank, ranks, meet] = member;
    WindowMemory window(member);
    const DeviceCall call = requested(member, gather_call(window));
    if (!own.rig().begin_capture(own.stream(0)).ok()) return "not captured";
    const Status captured = enqueue({&call, 1});
    if (!captured.ok()) return captured.message();
    const auto graph = own.rig().end_capture(own.stream(0)).value();
    for (std::uint32_t turn = 0; turn < 4; ++turn) {
      window.write(std::vector<std::byte>(window.bytes(), kOther), 0);
      window.write(block_of(rank, turn), 0);
      meet.arrive_and_wait();
      const Status status = turn == 2 ? enqueue({&call, 1}) : graph->replay(own.stream(0));
      if (!status.ok()) return status.message();
      own.synchronize();
      if (own[0].last_run().algorithm != std::string(kRequest)) return "did not use copy engines";
      if (window.read(kOutputAt, ranks * kBlockBytes) != blocks_of(ranks, turn)) return "turn " + std::to_string(turn);
      meet.arrive_and_wait();
    }
    return window.withdraw();
  };
  EXPECT_EQ(run_members(3, work), "right");
}

// Calls of two communicators in groups wait for each other's peers. In one stream they need the same order on all
// ranks, whatever their order in the group. In two streams they do not hold each other up.
TEST(CopyEngines, RunInGroupsOfCommunicators) {
  const auto work = [](const Member& member) -> std::string {
    const auto& [own, rank, ranks, meet] = member;
    Result<std::unique_ptr<Communicator>> part = own[0].split(0, 0, own[0].options());
    if (!part.ok()) return std::move(part).status().message();
    Communicator& other = *part.value();
    WindowMemory window(member), other_window(member, *other.on_device());
    const DeviceStream second = own.rig().make_stream();
    DeviceCall first_call = requested(member, gather_call(window), 20'000);
    DeviceCall other_call = requested(member, gather_call(other_window), 20'000);
    other_call.communicator = &other;
    for (const bool one_stream : {true, false}) {
      for (const WindowMemory* each : {&window, &other_window}) {
        each->write(std::vector<std::byte>(each->bytes(), kOther), 0);
        each->write(block_of(rank, each == &window ? 1 : 2), 0);
      }
      meet.arrive_and_wait();
      Status status;
      if (one_stream) {
        std::vector<DeviceCall> group = {first_call, other_call};
        if (rank % 2 == 1) std::swap(group[0], group[1]);
        status = enqueue(group);
      } else if (rank == 0) {
        other_call.stream = second;
        status = enqueue(std::vector<DeviceCall>{first_call, other_call});
      } else {
        status = enqueue({&other_call, 1});
        if (status.ok()) status = enqueue({&first_call, 1});
      }
      if (!status.ok()) return status.message();
      own.synchronize();
      (void)own.rig().synchronize(second);
      if (!own[0].failure().ok()) return own[0].failure().message();
      for (const Communicator* each : {&own[0], &other})
        if (each->last_run().algorithm != std::string(kRequest)) return "did not use copy engines";
      if (window.read(kOutputAt, ranks * kBlockBytes) != blocks_of(ranks, 1)) return "wrong";
      if (other_window.read(kOutputAt, ranks * kBlockBytes) != blocks_of(ranks, 2)) return "wrong in the other one";
      meet.arrive_and_wait();
    }
    own.rig().destroy_stream(second);
    return window.withdraw();
  };
  EXPECT_EQ(run_members(2, work), "right");
}

}  // namespace
}  // namespace tutti::test
