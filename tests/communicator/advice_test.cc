// Calls of ranks on host memory with a tuner plugin.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "src/communicator/call/hosts.h"
#include "tests/communicator/calls.h"
#include "tests/communicator/ranks.h"
#include "tests/tuner/plugin/stand_in.h"

namespace tutti::test {
namespace {

using nccl_tuner::Table;

constexpr std::size_t kTree = 0, kRing = 1, kSimple = 2;

std::int32_t take_ring(const AskedCall&, Table& table, std::int32_t&) {
  table[kRing][kSimple] = 0;
  return 0;
}
std::int32_t take_tree_then_ring(const AskedCall& call, Table& table, std::int32_t&) {
  table[call.context % 2 == 0 ? kTree : kRing][kSimple] = 0;
  return 0;
}
std::int32_t take_ring_on_one(const AskedCall& call, Table& table, std::int32_t&) {
  if (call.context == 1) table[kRing][kSimple] = 0;
  return 0;
}

class TunerPluginCalls : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { stand_in_ = StandIn(); }
  // With a network transport, each rank is on its own host.
  static CommunicatorOptions options() {
    CommunicatorOptions made;
    made.tuner_plugin = STAND_IN_V5;
    made.transport = GetParam();
    return made;
  }

  StandIn& stand_in_ = stand_in_of(STAND_IN_V5);
};
INSTANTIATE_TEST_SUITE_P(Transports, TunerPluginCalls, testing::Values("shm", "tcp"),
                         [](const auto& transport) { return std::string(transport.param); });

// All-reduces `count` ones per rank. Returns the algorithm that ran, or an error if the sum is wrong.
Result<std::string> sum_up(Communicator& communicator, std::size_t count) {
  std::vector<float> buffer(count, 1);
  TUTTI_CHECK_OK(communicator.run(all_reduce(buffer)));
  const auto expected = static_cast<float>(communicator.ranks());
  if (buffer != std::vector<float>(count, expected)) return internal_error("the sum is wrong");
  return std::string(communicator.last_run().algorithm);
}

std::vector<std::string> algorithms_of(Communicators& ranks, std::size_t count) {
  std::vector<std::string> ran(ranks.size());
  on_all(ranks, [&](Communicator& communicator) -> Status {
    auto done = sum_up(communicator, count);
    ran[communicator.rank()] = done.ok() ? done.value() : std::move(done).status().message();
    return {};
  });
  return ran;
}

TEST_P(TunerPluginCalls, UseAlgorithmOfPlugin) {
  for (const Rank count : {2, 3, 4}) {
    for (const std::size_t elements : {4, 100'000}) {
      stand_in_ = StandIn();
      stand_in_.answer = take_ring;
      Communicators ranks = make_ranks(count, options());
      EXPECT_EQ(algorithms_of(ranks, elements), std::vector<std::string>(count, "ring")) << count << ' ' << elements;
      EXPECT_EQ(stand_in_.requested.bytes, elements * sizeof(float));
      EXPECT_EQ(stand_in_.answers, static_cast<std::int32_t>(count));
      EXPECT_EQ(algorithms_of(ranks, elements), std::vector<std::string>(count, "ring"));
      EXPECT_EQ(stand_in_.answers, static_cast<std::int32_t>(count)) << "asked once for each shape of call";
      ranks.clear();
      EXPECT_EQ(stand_in_.ended, static_cast<std::int32_t>(count));
    }
  }
}

TEST_P(TunerPluginCalls, UseDefault_WhenPluginChangesNothing) {
  CommunicatorOptions plain = options();
  plain.tuner_plugin = "none";
  for (const std::size_t elements : {4, 100'000}) {
    Communicators ranks = make_ranks(3, options());
    Communicators others = make_ranks(3, plain);
    EXPECT_EQ(algorithms_of(ranks, elements), algorithms_of(others, elements));
  }
  EXPECT_EQ(stand_in_.contexts, 6);
  EXPECT_EQ(stand_in_.answers, 6);
}

TEST_P(TunerPluginCalls, UseForcedAlgorithm_DespitePlugin) {
  stand_in_.answer = take_ring;
  CommunicatorOptions forced = options();
  forced.algorithm = "recursive_doubling";
  Communicators ranks = make_ranks(3, forced);
  EXPECT_EQ(algorithms_of(ranks, 100), std::vector<std::string>(3, "recursive_doubling"));
  EXPECT_EQ(stand_in_.answers, 0);
}

// Plugins choose different algorithms, or only that of rank 1 makes a choice. All ranks must report this instead of
// waiting for each other.
TEST_P(TunerPluginCalls, FailOnAllRanks_WhenPluginsDisagree) {
  for (const auto answer : {take_tree_then_ring, take_ring_on_one}) {
    for (const Rank count : {2, 3, 5}) {
      for (const std::size_t elements : {4, 100'000}) {
        stand_in_ = StandIn();
        stand_in_.answer = answer;
        Communicators ranks = make_ranks(count, options());
        for (const std::string& reported : algorithms_of(ranks, elements))
          EXPECT_NE(reported.find(" choose differently: TUTTI_TUNER_PLUGIN"), std::string::npos) << reported;
      }
    }
  }
}

TEST_P(TunerPluginCalls, ConsultPlugin_InSubCommunicators) {
  stand_in_.answer = take_ring;
  Communicators ranks = make_ranks(4, options());
  const auto statuses = on_all(ranks, [](Communicator& communicator) -> Status {
    auto part = TUTTI_TRY(communicator.split(communicator.rank() % 2 == 0 ? 0 : 1, 0, communicator.options()));
    const std::string ran = TUTTI_TRY(sum_up(*part, 100));
    return ran == "ring" ? Status() : internal_error(ran);
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(stand_in_.contexts, 8);
  EXPECT_EQ(stand_in_.ranks, 2U);
}

// A plugin may use the id of a communicator as key of its state. Ids must be equal on all ranks and differ between
// communicators, even between those of the same ranks.
TEST_P(TunerPluginCalls, PassIdOfCommunicator) {
  Communicators ranks = make_ranks(4, options());
  const std::vector<std::uint64_t> whole = stand_in_.communicators;
  ASSERT_EQ(whole.size(), 4U);
  std::set<std::uint64_t> ids = {whole[0]};
  for (const std::uint64_t id : whole) EXPECT_EQ(id, whole[0]);
  for (int turn = 0; turn < 2; ++turn) {  // Both splits have the same ranks.
    stand_in_.communicators.clear();
    Communicators parts(4);
    for (const Status& status : on_all(ranks, [&](Communicator& communicator) -> Status {
           const int color = communicator.rank() % 2 == 0 ? 0 : 1;
           parts[communicator.rank()] = TUTTI_TRY(communicator.split(color, 0, communicator.options()));
           return {};
         }))
      EXPECT_TRUE(status.ok()) << status.message();
    std::map<std::uint64_t, int> reported;
    for (const std::uint64_t id : stand_in_.communicators) ++reported[id];
    EXPECT_EQ(reported.size(), 2U);
    for (const auto& [id, times] : reported) {
      EXPECT_EQ(times, 2);
      EXPECT_TRUE(ids.insert(id).second);
    }
  }
  for (int turn = 0; turn < 2; ++turn) {  // Both communicators exclude rank 3.
    stand_in_.communicators.clear();
    Communicators parts(4);
    for (const Status& status : on_all(ranks, [&](Communicator& communicator) -> Status {
           if (communicator.rank() == 3) return {};
           parts[communicator.rank()] = TUTTI_TRY(communicator.shrink({3}, communicator.options()));
           return {};
         }))
      EXPECT_TRUE(status.ok()) << status.message();
    const std::set<std::uint64_t> reported(stand_in_.communicators.begin(), stand_in_.communicators.end());
    ASSERT_EQ(stand_in_.communicators.size(), 3U);
    ASSERT_EQ(reported.size(), 1U);
    EXPECT_TRUE(ids.insert(*reported.begin()).second) << "shrink " << turn;
  }
}

// Autotuning is on, but the plugin must decide each call from the first one on.
TEST_P(TunerPluginCalls, DoNotAutotune) {
  stand_in_.answer = take_ring;
  CommunicatorOptions tuned = options();
  tuned.tune = Tune::all;
  Communicators ranks = make_ranks(3, tuned);
  for (int call = 0; call < 60; ++call)
    ASSERT_EQ(algorithms_of(ranks, 100), std::vector<std::string>(3, "ring")) << "call " << call;
  EXPECT_EQ(stand_in_.answers, 3);
}

// Hosts of 3 and 1 ranks. The plugin must receive the smallest and the largest number of ranks per host.
TEST(TunerPlugin, ReceivesUnevenHosts) {
  StandIn& stand_in = stand_in_of(STAND_IN_V5);
  stand_in = StandIn();
  CommunicatorOptions options;
  options.tuner_plugin = STAND_IN_V5;
  const std::vector<Rank> places = {0, 0, 0, 1};
  auto made = Communicator::create_all(Hosts(places), options);
  ASSERT_TRUE(made.ok()) << std::move(made).status().message();
  EXPECT_EQ(stand_in.ranks, 4U);
  EXPECT_EQ(stand_in.hosts, 2U);
  EXPECT_EQ(stand_in.domains.min_ranks, 1);
  EXPECT_EQ(stand_in.domains.max_ranks, 3);
}

}  // namespace
}  // namespace tutti::test
