// Ranks on a device in separate processes.
#include <algorithm>
#include <random>

#include "src/bootstrap/bootstrap.h"
#include "tests/communicator/device/device_processes.h"

namespace tutti::test {
namespace {

class MultiProcessDevice : public DevicesOfProcesses {
 protected:
  void start(Rank first, Rank count, Rank ranks, const DeviceProcessGroup::Work& work) {
    processes_.start(GetParam().make, first, count, ranks, work);
  }
  void expect_reports(const std::string& wanted) { processes_.expect_reports(wanted); }

  DeviceProcessGroup processes_;
};

TEST_P(MultiProcessDevice, ComputesCorrectResults) {
  constexpr Rank kRanks = 3;
  for (Rank rank = 0; rank < kRanks; ++rank)
    start(rank, 1, kRanks, [](DeviceRanks& own, Rank first) { return run_collectives(own, first, kRanks); });
  expect_reports("right");
}

TEST_P(MultiProcessDevice, ComputesCorrectResults_WithSeveralRanksPerProcess) {
  const auto work = [](DeviceRanks& own, Rank first) { return run_collectives(own, first, 4); };
  start(0, 2, 4, work);
  start(2, 1, 4, work);
  start(3, 1, 4, work);
  expect_reports("right");
}

// Alternates groups of messages with collectives between the same ranks. Messages have lanes of their own: one that
// used lanes of collectives would corrupt data.
TEST_P(MultiProcessDevice, ExchangesMessages_InAnyOrderWithCollectives) {
  constexpr std::uint64_t kElements = 20000;
  const auto work = [](DeviceRanks& own, Rank rank) -> std::string {
    auto* sent = own.take<std::int32_t>(kElements, static_cast<std::int32_t>(rank + 1));
    auto* received = own.take<std::int32_t>(kElements, -1);
    auto* sum = own.take<std::int32_t>(kElements, 1);
    Call send = call_of(Collective::all_reduce, DataType::int32, kElements, sent, received);
    send.kind = Kind::send;
    send.root = 1 - rank;
    Call recv = send;
    recv.kind = Kind::recv;
    const Call reduce = call_of(Collective::all_reduce, DataType::int32, kElements, sum, sum);
    const DeviceCall messages[] = {own.call(0, send), own.call(0, recv)};
    const DeviceCall collective = own.call(0, reduce);
    for (int turn = 0; turn < 3; ++turn) {
      Status status = enqueue(messages);
      if (status.ok()) status = enqueue({&collective, 1});
      if (!status.ok()) return status.message();
    }
    own.synchronize();
    if (sum[kElements - 1] != 8) return "the sum is " + std::to_string(sum[kElements - 1]);
    for (std::uint64_t i = 0; i < kElements; ++i) {
      if (received[i] != static_cast<std::int32_t>(2 - rank)) return "received " + std::to_string(received[i]);
    }
    return "right";
  };
  for (const Rank rank : {0U, 1U}) start(rank, 1, 2, work);
  expect_reports("right");
}

// A large message has several channels, but not more than either rank allows.
TEST_P(MultiProcessDevice, SendsMessages_WithLeastMaxChannels) {
  constexpr std::uint64_t kElements = 1 << 19;
  const auto work = [](DeviceRanks& own, Rank rank) -> std::string {
    auto* buffer = own.take<std::int32_t>(kElements, rank == 0 ? 7 : 0);
    Call message = call_of(Collective::all_reduce, DataType::int32, kElements, buffer, buffer);
    message.kind = rank == 0 ? Kind::send : Kind::recv;
    message.root = 1 - rank;
    DeviceCall call = own.call(0, message);
    call.options.timeout_ms = test_timeout_ms(own.rig(), 5'000);
    const Status status = enqueue({&call, 1});
    if (!status.ok()) return status.message();
    own.synchronize();
    if (!own[0].failure().ok()) return own[0].failure().message();
    return std::count(buffer, buffer + kElements, 7) == kElements ? "right" : "wrong data";
  };
  for (const Rank rank : {0U, 1U}) {
    CommunicatorOptions options = over_transport();
    options.max_channels = rank == 0 ? 1 : 0;
    processes_.start(GetParam().make, rank, 1, 2, work, options);
  }
  expect_reports("right");
}

TEST_P(MultiProcessDevice, ReportsRankDeath) {
  const Gate gate;
  start(0, 1, 2, [&](DeviceRanks& own, Rank) -> std::string {
    auto* buffer = own.take<float>(1000, 1);
    const DeviceCall call = own.call(0, call_of(Collective::all_reduce, DataType::float32, 1000, buffer, buffer));
    gate.open();
    if (!enqueue({&call, 1}).ok()) return "not enqueued";
    while (own[0].failure().ok()) std::this_thread::yield();
    own.synchronize();  // Returns, since the failure ends all waits.
    return own[0].failure().message().find("rank 1 died") != std::string::npos ? "reported"
                                                                               : own[0].failure().message();
  });
  start(1, 1, 2, [](DeviceRanks&, Rank) -> std::string {
    for (;;) ::pause();
  });
  gate.wait();
  processes_.kill(1);
  EXPECT_EQ(processes_.report(0), "reported");
}

// No thread but the waiting one can find that rank 1 has died.
TEST_P(MultiProcessDevice, ReportsRankDeath_WhileAwaitingCalls) {
  const Gate gate;
  start(0, 1, 2, [&](DeviceRanks& own, Rank) -> std::string {
    auto* buffer = own.take<float>(1000, 1);
    DeviceCall call = own.call(0, call_of(Collective::all_reduce, DataType::float32, 1000, buffer, buffer));
    call.options.timeout_ms = test_timeout_ms(own.rig(), 0);
    if (!enqueue({&call, 1}).ok()) return "not enqueued";
    gate.open();
    const Status ended = own.backend(0).await_own_calls();
    return ended.message().find("rank 1 died") != std::string::npos ? "reported" : ended.message();
  });
  start(1, 1, 2, [](DeviceRanks&, Rank) -> std::string {
    for (;;) ::pause();
  });
  gate.wait();
  processes_.kill(1);
  EXPECT_EQ(processes_.report(0), "reported");
}

// Repeats calls until one fails, and opens the gate in the middle. Returns "reported" if the error names rank 1, else
// the error.
std::string call_until_a_death(DeviceRanks& own, const Gate& gate) {
  constexpr std::uint64_t kElements = 30000;
  auto* buffer = own.take<std::int32_t>(kElements, 1);
  const auto end = own.backend(0).device().make_event().value();
  const DeviceCall call = own.call(0, call_of(Collective::all_reduce, DataType::int32, kElements, buffer, buffer));
  for (int turn = 0; own[0].failure().ok(); ++turn) {
    if (turn == 5) gate.open();
    if (!enqueue({&call, 1}).ok()) break;
    if (!end->record(own.stream(0)).ok()) return "not recorded";
    while (own[0].failure().ok() && !end->reached().value()) std::this_thread::yield();
  }
  own.synchronize();
  return own[0].failure().message().find("rank 1 died") != std::string::npos ? "reported" : own[0].failure().message();
}

TEST_P(MultiProcessDevice, ReportsRankDeath_DuringCalls) {
  const Gate gate;
  start(0, 1, 2, [&](DeviceRanks& own, Rank) { return call_until_a_death(own, gate); });
  start(1, 1, 2, [](DeviceRanks& own, Rank) -> std::string {
    const Gate never;
    return call_until_a_death(own, never);
  });
  gate.wait();
  processes_.kill(1);
  EXPECT_EQ(processes_.report(0), "reported");
}

// Replays a graph of two calls with several inputs, with other calls in between. Returns "right" or an error.
std::string replay_graphs(DeviceRanks& own, Rank rank) {
  DeviceRig& rig = own.rig();
  constexpr std::uint64_t kElements = 30000;
  auto* input = own.take<std::int64_t>(kElements);
  auto* middle = own.take<std::int64_t>(kElements);
  auto* output = own.take<std::int64_t>(kElements);
  const DeviceCall first = own.call(0, call_of(Collective::all_reduce, DataType::int64, kElements, input, middle));
  const DeviceCall second = own.call(0, call_of(Collective::all_reduce, DataType::int64, kElements, middle, output));
  if (!enqueue({&first, 1}).ok()) return "not enqueued";
  if (!rig.begin_capture(own.stream(0)).ok()) return "not captured";
  for (const DeviceCall* call : {&first, &second}) {
    const Status status = enqueue({call, 1});
    if (!status.ok()) return status.message();
  }
  const auto graph = rig.end_capture(own.stream(0)).value();
  for (std::int64_t value = 1; value < 6; ++value) {
    own.synchronize();
    std::fill_n(input, kElements, value + rank);
    if (!graph->replay(own.stream(0)).ok()) return "not replayed";
    own.synchronize();
    if (output[0] != 2 * (2 * value + 1) || output[kElements - 1] != output[0]) return "a wrong sum";
    if (!enqueue({&second, 1}).ok()) return "not enqueued";
  }
  own.synchronize();
  return "right";
}

TEST_P(MultiProcessDevice, ReplaysGraphs) {
  for (const Rank rank : {0U, 1U}) {
    start(rank, 1, 2, replay_graphs);
  }
  expect_reports("right");
}

TEST_P(MultiProcessDevice, NamesMissingRank) {
  const Gate gate;
  start(0, 1, 2, [&](DeviceRanks& own, Rank) -> std::string {
    auto* buffer = own.take<float>(1000, 1);
    DeviceCall call = own.call(0, call_of(Collective::all_reduce, DataType::float32, 1000, buffer, buffer));
    call.options.timeout_ms = 20;
    if (!enqueue({&call, 1}).ok()) return "not enqueued";
    own.synchronize();
    gate.open();
    return own[0].failure().message();
  });
  start(1, 1, 2, [&](DeviceRanks&, Rank) -> std::string {
    gate.wait();
    return "";
  });
  EXPECT_NE(processes_.report(0).find("waited too long for rank 1"), std::string::npos) << processes_.report(0);
}

// Work of the survivors: waits for the failure, shrinks the communicator and runs a call. Returns an error or an empty
// string.
std::string go_on_without(DeviceRanks& own, Rank killed, const Gate& gate) {
  constexpr std::uint64_t kElements = 5000;
  auto* buffer = own.take<float>(kElements, 1);
  DeviceCall call = own.call(0, call_of(Collective::all_reduce, DataType::float32, kElements, buffer, buffer));
  if (!enqueue({&call, 1}).ok()) return "not enqueued";
  gate.open();
  while (own[0].failure().ok()) std::this_thread::yield();
  own.synchronize();
  auto part = own[0].shrink({killed}, own[0].options());
  if (!part.ok()) return std::move(part).status().message();
  std::fill_n(buffer, kElements, 1.0F);
  call.communicator = part.value().get();
  const Status status = enqueue({&call, 1});
  if (!status.ok()) return status.message();
  own.synchronize();
  if (buffer[0] != 2 || buffer[kElements - 1] != 2) return "a wrong sum";
  return part.value()->finalize().message();
}

TEST_P(MultiProcessDevice, Shrinks_AfterRankDeath) {
  const Gate gate;
  const auto survive = [&](DeviceRanks& own, Rank) { return go_on_without(own, 1, gate); };
  start(0, 1, 3, survive);
  start(1, 1, 3, [](DeviceRanks&, Rank) -> std::string {
    for (;;) ::pause();
  });
  start(2, 1, 3, survive);
  gate.wait();
  gate.wait();
  processes_.kill(1);
  for (const std::size_t survivor : {0U, 2U}) EXPECT_EQ(processes_.report(survivor), "");
}

INSTANTIATE_TEST_SUITE_P(All, MultiProcessDevice, testing::ValuesIn(shared_device_kinds()), kind_of);

}  // namespace
}  // namespace tutti::test
