// Ranks on devices that communicate over the network: on several emulated hosts, or on one host.
#include <algorithm>
#include <chrono>
#include <thread>

#include "src/communicator/planning/rings.h"
#include "tests/base/case_sampling.h"
#include "tests/communicator/crossed_gpus.h"
#include "tests/communicator/device/device_processes.h"
#include "tests/tuner/hybrid_cube_mesh.h"

namespace tutti::test {
namespace {

std::string run_all(DeviceRanks& own, Rank first, Rank ranks) {
  std::string said = run_collectives(own, first, ranks);
  for (const std::uint64_t count : {1U, 300000U}) {
    if (said == "right") said = run_messages(own, first, ranks, count);
  }
  return said;
}

Communicators members_of(const std::vector<Rank>& host_of, const CommunicatorOptions& given = {}) {
  CommunicatorOptions options = over_transport(given);
  options.update_agreement_hash();
  return std::move(Communicator::create_all(Hosts(host_of), options)).value();
}

CommunicatorOptions by_network() {
  CommunicatorOptions options;
  options.transport = over_network() ? config().transport : "tcp";
  return options;
}

class DeviceNetwork : public OnDevices {};

TEST_P(DeviceNetwork, ConnectsHosts_OfOneAndOfSeveralRanks) {
  OneOf layouts(kFindsRaces ? 4 : 2);
  for (const std::vector<Rank>& host_of :
       {std::vector<Rank>{0, 0, 1}, {0, 1, 0, 1}, {0, 1, 1, 2, 0}, {0, 0, 0, 1, 1}, {0, 0, 0, 1, 1, 1}}) {
    if (!layouts.takes()) continue;
    SCOPED_TRACE(testing::PrintToString(host_of));
    DeviceRanks ranks(*rig_, members_of(host_of));
    EXPECT_FALSE(ranks[0].on_one_host());
    ASSERT_EQ(run_all(ranks, 0, ranks.size()), "right");
  }
}

// Requests the algorithms, since the tuner may choose others.
TEST_P(DeviceNetwork, RunsHierarchicalAlgorithms) {
  std::size_t first = 0;  // Slow builds run every algorithm, on one layout after the other.
  for (const char* algorithm : {"hierarchical", "host_ring", "host_tree", "host_one_shot", "host_doubling"}) {
    OneOf layouts(2, first++);
    CommunicatorOptions options;
    options.algorithm = algorithm;
    for (const std::vector<Rank>& host_of : {std::vector<Rank>{0, 0, 1, 1}, {0, 0, 1, 1, 2, 2}}) {
      if (!layouts.takes()) continue;
      SCOPED_TRACE(algorithm + testing::PrintToString(host_of));
      DeviceRanks ranks(*rig_, members_of(host_of, options));
      EXPECT_EQ(run_collectives(ranks, 0, ranks.size()), "right");
    }
  }
}

// Consecutive ranks are on different hosts. Hierarchical plans move blocks in the order of hosts, but must deliver them
// in the order of ranks.
TEST_P(DeviceNetwork, GathersAndScatters_WithAnyRankOrder) {
  for (const char* algorithm : {"hierarchical", "host_ring"}) {
    CommunicatorOptions options;
    options.algorithm = algorithm;
    for (const std::vector<Rank>& host_of : {std::vector<Rank>{0, 1, 0, 1}, {0, 1, 1, 0, 1}}) {
      SCOPED_TRACE(algorithm + testing::PrintToString(host_of));
      DeviceRanks ranks(*rig_, members_of(host_of, options));
      std::mt19937_64 random(kSeed);
      for (const CallShape& shape : shapes_of(ranks.size(), random)) {
        if (shape.problem.collective != Collective::all_gather &&
            shape.problem.collective != Collective::reduce_scatter)
          continue;
        ASSERT_EQ(run_collective(ranks, 0, shape), "");
        EXPECT_STREQ(ranks[0].last_run().algorithm, shape.count > 0 ? algorithm : "");
      }
    }
  }
}

// Plans on rails have more channels than others, which use the same lanes on the first channels.
TEST_P(DeviceNetwork, UsesLanesOfRails) {
  const auto rig = host_rig({.thread_count = 1, .thread_blocks = 128});
  DeviceRanks ranks(*rig, members_of({0, 0, 1, 1}));
  const PeerSet& peers = ranks.backend(0).peers();
  ASSERT_GE(peers.thread_blocks(), peers.lanes().fewer_peers.partners);
  ASSERT_GT(peers.lanes().fewer_peers.partners, peers.lanes().channels_to_all());
  const auto sum = [&](std::uint64_t count) {
    return run_collective(ranks, 0, {{.collective = Collective::all_reduce, .ranks = 4, .groups = {}}, count, 0});
  };
  for (const std::uint64_t count : {3U, 500'000U, 40'000U, 700'000U}) {
    ASSERT_EQ(sum(count), "") << count;
    if (count < 500'000U) continue;
    EXPECT_STREQ(ranks[0].last_run().algorithm, "hierarchical");
    ASSERT_EQ(run_messages(ranks, 0, ranks.size(), 100'000), "right");
  }
}

// With six hosts, some ranks of a rail are no partners. Their lanes have fewer channels and smaller slots, which limit
// those of the plan.
TEST_P(DeviceNetwork, ForwardsBlocks_AlongRails) {
  CommunicatorOptions options;
  options.algorithm = "hierarchical";
  DeviceRanks ranks(*rig_, members_of({0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}, options));
  const PeerSet& peers = ranks.backend(0).peers();
  ASSERT_EQ(peers.rails().between(0, 4), RemotePeers::rail);
  ASSERT_GT(peers.lanes().fewer_peers.rail, peers.lanes().channels_to_all());
  OneOf cases(2);
  for (const std::uint64_t count : {40'000U, 3U}) {
    if (!cases.takes()) continue;
    const CallShape shape = {
        .problem = {.collective = Collective::all_to_all, .ranks = 12, .groups = {}}, .count = count, .turn = 1};
    for (int call = 0; call < 2; ++call) ASSERT_EQ(run_collective(ranks, 0, shape), "") << count;
    EXPECT_STREQ(ranks[0].last_run().algorithm, "hierarchical");
  }
}

// Rings follow the links of the GPUs, and each channel may have a different ring. Checks one host and two.
TEST_P(DeviceNetwork, RingsFollowLinksOfGpus) {
  OneOf settings(4);
  for (const char* algorithm : {"ring", "chain", "hierarchical_ring", "hierarchical_tree"}) {
    for (const std::vector<Rank>& host_of : {std::vector<Rank>{0, 0, 0, 0}, {0, 1, 0, 1, 0}}) {
      SCOPED_TRACE(algorithm + testing::PrintToString(host_of));
      CommunicatorOptions options = over_transport();
      if (host_of.size() == 4 && std::string_view(algorithm).starts_with("hierarchical"))
        continue;  // The algorithm requires several hosts.
      options.algorithm = algorithm;
      for (const std::uint32_t channels : {0U, 1U, 3U}) {
        if (!settings.takes()) continue;
        options.channels = channels;
        options.update_agreement_hash();
        DeviceRanks ranks(*rig_, std::move(Communicator::create_all(on_crossed_gpus(host_of), options)).value());
        EXPECT_EQ(run_collectives(ranks, 0, ranks.size(), kSlowMotion ? 1 : 2), "right");
      }
    }
  }
}

// The links allow six rings, but calls have fewer channels, which use the first rings.
TEST_P(DeviceNetwork, RingsFollowLinks_OnFewerChannels) {
  const Hosts cube = on_gpus_of(hybrid_cube_mesh(), std::vector<Rank>(8, 0));
  ASSERT_EQ(ring_orders(cube, kMaxRingOrders).each.size(), 6U);
  CommunicatorOptions options = over_transport();
  options.algorithm = "ring";
  OneOf cases(5);
  for (const std::uint32_t channels : {1U, 2U, 4U}) {
    SCOPED_TRACE(channels);
    options.channels = channels;
    options.update_agreement_hash();
    DeviceRanks ranks(*rig_, std::move(Communicator::create_all(cube, options)).value());
    for (const Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter}) {
      for (const std::uint64_t count : {7U, 30'000U}) {
        if (!cases.takes()) continue;
        const CallShape shape = {
            .problem = {.collective = collective, .ranks = 8, .groups = {}}, .count = count, .turn = 1};
        ASSERT_EQ(run_collective(ranks, 0, shape), "") << name(collective) << " of " << count;
      }
    }
  }
}

// Alternates algorithms and numbers of channels. Calls share lanes, so that each call must begin at the slot where the
// previous one ended, whatever its algorithm.
TEST_P(DeviceNetwork, MixesRingsWithOtherAlgorithms) {
  constexpr std::uint64_t kCount = 20'000;
  DeviceRanks ranks(*rig_,
                    std::move(Communicator::create_all(on_crossed_gpus({0, 0, 0, 0}), over_transport())).value());
  std::vector<float*> buffers;
  for (Rank rank = 0; rank < ranks.size(); ++rank) buffers.push_back(ranks.take<float>(kCount, 1));
  float sum = 1;
  for (int turn = 0; turn < 12; ++turn, sum *= 4) {
    std::vector<DeviceCall> calls;
    for (Rank rank = 0; rank < ranks.size(); ++rank) {
      calls.push_back(
          ranks.call(rank, call_of(Collective::all_reduce, DataType::float32, kCount, buffers[rank], buffers[rank])));
      calls.back().options.algorithm = turn % 3 == 0 ? "two_shot" : "ring";
      calls.back().options.channels = 1 + static_cast<std::uint32_t>(turn) % 4;
      calls.back().options.update_agreement_hash();
    }
    const Status status = enqueue(calls);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  ranks.synchronize();
  for (float* buffer : buffers) EXPECT_EQ(std::count(buffer, buffer + kCount, sum), static_cast<long>(kCount));
}

TEST_P(DeviceNetwork, SplitsWithinAndAcrossHosts) {
  DeviceRanks ranks(*rig_, members_of({0, 0, 1, 1}));
  for (const bool within : {true, false}) {
    Communicators parts(4);
    std::vector<std::thread> threads;
    for (Rank rank = 0; rank < 4; ++rank) {
      threads.emplace_back([&, rank] {
        auto part = ranks[rank].split(static_cast<int>(within ? rank / 2 : rank % 2), 0, ranks[rank].options());
        if (part.ok()) parts[rank] = std::move(part).value();
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::vector<DeviceCall> calls;
    std::vector<float*> buffers;
    for (Rank rank = 0; rank < 4; ++rank) {
      ASSERT_NE(parts[rank], nullptr);
      EXPECT_EQ(parts[rank]->on_one_host(), within);
      buffers.push_back(ranks.take<float>(50000, static_cast<float>(1U << rank)));
      calls.push_back(
          ranks.call(rank, call_of(Collective::all_reduce, DataType::float32, 50000, buffers[rank], buffers[rank])));
      calls.back().communicator = parts[rank].get();
    }
    const Status status = enqueue(calls);
    ASSERT_TRUE(status.ok()) << status.message();
    ranks.synchronize();
    for (Rank rank = 0; rank < 4; ++rank)
      EXPECT_EQ(buffers[rank][49999], within ? (rank < 2 ? 3 : 12) : (rank % 2 == 0 ? 5 : 10));
  }
}

// Peers cannot map memory over a network: registration succeeds, but provides no window.
TEST_P(DeviceNetwork, HasNoWindows) {
  DeviceRanks ranks(*rig_, 2, by_network());
  auto* memory = rig_->device().allocate(1 << 16).value();
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const auto shown = ranks.backend(rank).register_window({memory, 1 << 16, WindowGuarantee::symmetric});
      EXPECT_TRUE(shown.ok() && shown.value() == 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  rig_->device().recycle(memory);
}

TEST_P(DeviceNetwork, RejectsMappedAlgorithmsAndLl) {
  for (const char* forced : {"two_shot_mapped", "LL"}) {
    CommunicatorOptions options = by_network();
    (forced[0] == 'L' ? options.protocol : options.algorithm) = forced;
    DeviceRanks ranks(*rig_, 2, options);
    auto* buffer = ranks.take<float>(1000, 1);
    const DeviceCall call = ranks.call(0, call_of(Collective::all_reduce, DataType::float32, 1000, buffer, buffer));
    const Status status = enqueue({&call, 1});
    EXPECT_EQ(status.code(), Code::unsupported);
    EXPECT_NE(status.message().find(forced), std::string::npos) << status.message();
  }
}

// Only rank 0 of three calls, as if rank 1 on another host were killed or slow. Ranks of all hosts must report rank 1
// without a further call.
TEST_P(DeviceNetwork, NamesMissingRank_OnAllHosts) {
  DeviceRanks ranks(*rig_, members_of({0, 1, 1}));
  auto* buffer = ranks.take<float>(1000, 1);
  DeviceCall call = ranks.call(0, call_of(Collective::broadcast, DataType::float32, 1000, buffer, buffer));
  call.call.root = 1;
  call.options.timeout_ms = 20;
  ASSERT_TRUE(enqueue({&call, 1}).ok());
  while (!ranks.backend(1).has_failed()) std::this_thread::yield();  // Failed by rank 0 on the other host.
  const Status status = ranks[1].failure();
  EXPECT_EQ(status.code(), Code::timeout);
  for (const char* word : {"rank 0 waited too long for rank 1 in broadcast(1000 float32, root 1)",
                           "rank 1 has not reported it", " over 127.0.0.1:"})
    EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
  ranks.synchronize();
}

TEST_P(DeviceNetwork, AbortEndsWaits_OnOtherHosts) {
  DeviceRanks ranks(*rig_, members_of({0, 1}));
  auto* buffer = ranks.take<float>(1000, 1);
  DeviceCall call = ranks.call(0, call_of(Collective::all_reduce, DataType::float32, 1000, buffer, buffer));
  call.options.timeout_ms = test_timeout_ms(*rig_, 0);
  ASSERT_TRUE(enqueue({&call, 1}).ok());
  ranks[1].abort();
  ranks.synchronize();
  EXPECT_EQ(ranks[0].failure().code(), Code::aborted);
}

// Counts the rounds of the proxy thread between calls. It must sleep without graphs, and poll at intervals while one
// exists.
TEST_P(DeviceNetwork, UsesNoCpu_BetweenCalls) {
  DeviceRanks ranks(*rig_, 2, by_network());
  const auto rounds = [&] {  // Per 200 ms.
    constexpr std::chrono::nanoseconds kWhile = std::chrono::milliseconds(200);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::uint64_t before = ranks.backend(0).proxy_rounds();
    const auto began = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(kWhile);
    const std::uint64_t counted = ranks.backend(0).proxy_rounds() - before;
    return counted * kWhile / std::max<std::chrono::nanoseconds>(kWhile, std::chrono::steady_clock::now() - began);
  };
  ASSERT_EQ(run_messages(ranks, 0, 2, 1000), "right");
  EXPECT_LE(rounds(), 4U);
  ASSERT_TRUE(rig_->begin_capture(ranks.stream(0)).ok());
  auto* buffer = ranks.take<float>(10, 1);
  const DeviceCall call = ranks.call(0, call_of(Collective::all_reduce, DataType::float32, 10, buffer, buffer));
  EXPECT_TRUE(enqueue({&call, 1}).ok());
  std::unique_ptr<DeviceGraph> graph = std::move(rig_->end_capture(ranks.stream(0))).value();
  std::uint64_t counted = rounds();
  while (counted > 210) counted = rounds();  // Until no replay is expected soon.
  EXPECT_GT(counted, 4U);
  graph.reset();
  while (counted > 4) counted = rounds();
}

TEST_P(DeviceNetwork, ReusesLanes_InNewCommunicators) {
  for (int turn = 0; turn < 3; ++turn) {
    DeviceRanks ranks(*rig_, 3, by_network());
    ASSERT_EQ(run_messages(ranks, 0, 3, 1000), "right");
    for (Rank rank = 0; rank < 3; ++rank) ASSERT_TRUE(ranks[rank].leave().ok());
  }
}

INSTANTIATE_TEST_SUITE_P(All, DeviceNetwork, testing::ValuesIn(shared_device_kinds()), kind_of);

// Two hosts, whose devices have no peer access. Ranks use lanes in host memory within a host and network lanes between
// hosts. No mapping may remain at the end.
TEST(DeviceNetworkOnEmulators, WorksBesideHostMemoryLanes) {
  constexpr Rank kRanks = 4;
  Communicators members = members_of({0, 0, 1, 1});
  std::vector<std::string> said(kRanks);
  std::vector<std::unique_ptr<DeviceRig>> rigs;
  for (Rank rank = 0; rank < kRanks; ++rank) rigs.push_back(host_rig({.ordinal = rank, .unreachable = ~0ULL}));
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      Communicators own;
      own.push_back(std::move(members[rank]));
      DeviceRanks ranks(*rigs[rank], std::move(own));
      said[rank] = run_all(ranks, rank, kRanks);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(said, std::vector<std::string>(kRanks, "right"));
  for (const auto& rig : rigs) EXPECT_EQ(dynamic_cast<HostDevice&>(rig->device()).usage().mappings, 0U);
}

// Calls of many chunks, for which lanes inside a host have too few slots to run the steps of a stage at once.
TEST(DeviceNetworkOnEmulators, RunsRoundsOfManyChunks) {
  const auto rig = host_rig({.thread_count = 2});
  CommunicatorOptions options;
  options.algorithm = "hierarchical";
  DeviceRanks ranks(*rig, members_of({0, 0, 0, 1, 1, 1}, options));
  for (const Collective collective : {Collective::all_gather, Collective::reduce_scatter, Collective::all_reduce}) {
    for (const std::uint64_t count : {600'000U, 100'001U}) {  // Units of one length and of two.
      ASSERT_EQ(run_collective(ranks, 0, {{.collective = collective, .ranks = 6, .groups = {}}, count, 0}), "")
          << count;
      EXPECT_STREQ(ranks[0].last_run().algorithm, "hierarchical");
    }
  }
}

// The device does not order writes of NICs. A transport that writes into device memory must read back its writes.
TEST(DeviceNetworkOnEmulators, Works_WhenDevicesDoNotOrderWrites) {
  const auto rig = host_rig({.orders_writes = false});
  DeviceRanks ranks(*rig, 2, by_network());
  EXPECT_EQ(run_all(ranks, 0, 2), "right");
}

// Rank 0 sends and leaves before rank 1 calls. leave() must return only after the operating system has all data of the
// message.
TEST(DeviceNetworkOnEmulators, DeliversMessages_OfRankThatLeaves) {
  constexpr std::uint64_t kCount = 100'000;  // Fits into the slots of a lane.
  const Gate gate;
  DeviceProcessGroup processes;
  const auto work = [&](DeviceRanks& own, Rank rank) -> std::string {
    auto* buffer = own.take<std::int32_t>(kCount, rank == 0 ? 7 : 0);
    Call call = call_of(Collective::all_reduce, DataType::int32, kCount, buffer, buffer);
    call.kind = rank == 0 ? Kind::send : Kind::recv;
    call.root = 1 - rank;
    const DeviceCall made = own.call(0, call);
    if (rank == 1) gate.wait();
    Status status = enqueue({&made, 1});
    if (status.ok()) status = own[0].leave();
    if (!status.ok()) return status.message();
    if (rank == 1) return buffer[0] == 7 && buffer[kCount - 1] == 7 ? "right" : "wrong";
    own.end(0);
    gate.open();
    return "right";
  };
  CommunicatorOptions options = by_network();
  for (const Rank rank : {0U, 1U}) {
    processes.start([] { return host_rig({}); }, rank, 1, 2, work, options);
  }
  processes.expect_reports("right");
}

}  // namespace
}  // namespace tutti::test
