// Autotuning of calls on host memory: results stay correct, all ranks switch at the same call, and autotuning ends.
#include "src/communicator/autotuning/host_autotuning.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <random>
#include <set>

#include "src/base/log.h"
#include "src/communicator/autotuning/machine_name.h"
#include "src/communicator/group.h"
#include "src/communicator/planning/planning.h"
#include "tests/base/case_sampling.h"
#include "tests/communicator/calls.h"
#include "tests/communicator/cases.h"
#include "tests/tuner/folder.h"

namespace tutti::test {
namespace {

CommunicatorOptions autotuning(Tune tune, const std::string& transport = "") {
  CommunicatorOptions options;
  options.tune = tune;
  options.transport = transport;
  options.timeout_ms = 60'000;
  options.update_agreement_hash();
  return options;
}

// Returns the candidates for a communicator on these hosts.
std::vector<Candidate> candidates_of(const Case& test, const Hosts& hosts) {
  const Machine machine = machine_of(hosts);
  Query query = query_of(test.problem, test.count * sizeof(float));
  query.machine = &machine;
  query.network = hosts.first_rank_of_host(hosts.ranks() - 1) != 0;
  if (query.network) query.protocol = "Simple";
  auto all = candidates(query);
  TUTTI_ASSERT(all.ok());
  return std::move(all).value();
}
std::vector<Candidate> candidates_of(const Case& test) {
  return candidates_of(test, Hosts::one_host(test.problem.ranks));
}

// Returns the number of operations after which autotuning has ended.
int longest(const std::vector<Candidate>& all, Collective collective = Collective::all_gather) {
  std::vector<double> predicted_us;
  for (const Candidate& candidate : all) predicted_us.push_back(candidate.predicted_us);
  return static_cast<int>(Autotuner(predicted_us, autotuner_options(has_root(collective), false)).max_operations());
}

// Returns a call for which the tuner tries several candidates on these ranks.
Case open_case(Collective collective, Rank ranks) {
  for (const std::size_t count : {100, 1, 10, 30, 300, 1000, 3000}) {
    const Case test = case_of(collective, ranks, count);
    const auto all = candidates_of(test);
    if (all.size() > 1 && all[1].predicted_us < 1.9 * all[0].predicted_us) return test;
  }
  ADD_FAILURE() << "no size of " << name(collective) << " of " << ranks << " ranks has several candidates";
  return case_of(collective, ranks, 100);
}

// Runs the same call repeatedly on all ranks. Returns the choice of each operation, which must be the same on all
// ranks.
std::vector<std::string> run_often(Communicators& ranks, const Case& test, int times,
                                   const CommunicatorOptions& options) {
  std::vector<std::vector<std::string>> ways(ranks.size());
  const auto statuses = on_all(ranks, [&](Communicator& communicator) -> Status {
    for (int i = 0; i < times; ++i) {
      std::int64_t wrong = -3;
      TUTTI_CHECK_OK(run_case(communicator, test, options, wrong));
      if (wrong != -1) return internal_error("element " + std::to_string(wrong) + " of operation " + std::to_string(i));
      ways[communicator.rank()].push_back(way_of(communicator));
    }
    return {};
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) EXPECT_EQ(ways[rank], ways[0]) << "rank " << rank;
  return ways[0];
}

std::set<std::string> distinct(const std::vector<std::string>& ways) { return {ways.begin(), ways.end()}; }

// Returns the number of operations after which the choice did not change.
std::size_t settled_after(const std::vector<std::string>& ways) {
  std::size_t end = ways.size();
  while (end > 0 && ways[end - 1] == ways.back()) --end;
  return end;
}

struct Setting {
  Rank ranks;
  const char* transport;
};
class AutotuningOf : public testing::TestWithParam<Setting> {};

TEST_P(AutotuningOf, EveryCollectiveSettlesOnOneChoice) {
  const auto [count, transport] = GetParam();
  const CommunicatorOptions options = autotuning(Tune::all, transport);
  Communicators ranks = make_ranks(count, options);
  std::set<std::string> tried;
  OneOf collectives(3, count);
  for (std::uint32_t c = 0; c < kCollectives; ++c) {
    if (!collectives.takes()) continue;
    const Case test = case_of(static_cast<Collective>(c), count, 200);
    const Hosts hosts = *transport == 0 ? Hosts::one_host(count) : Hosts::one_rank_per_host(count);
    const int max = longest(candidates_of(test, hosts), test.problem.collective);
    const auto ways = run_often(ranks, test, max + 20, options);
    ASSERT_FALSE(HasFailure()) << name(static_cast<Collective>(c));
    EXPECT_LE(settled_after(ways), static_cast<std::size_t>(max)) << name(static_cast<Collective>(c));
    EXPECT_EQ(distinct({ways.begin(), ways.begin() + 16}).size(), 1U);
    tried.merge(distinct(ways));
  }
  EXPECT_GT(tried.size(), 3U);
}

INSTANTIATE_TEST_SUITE_P(Ranks, AutotuningOf, testing::Values(Setting{2, ""}, Setting{4, ""}, Setting{3, "tcp"}),
                         [](const auto& setting) {
                           const Setting& of = setting.param;
                           return std::to_string(of.ranks) + (*of.transport == 0 ? "shm" : of.transport);
                         });

TEST(Autotuning, LeavesFloatReductionsAlone_InExactMode) {
  Communicators ranks = make_ranks(3, autotuning(Tune::exact));
  const Case sum = open_case(Collective::all_reduce, 3), copy = open_case(Collective::all_gather, 3);
  EXPECT_EQ(distinct(run_often(ranks, sum, 400, autotuning(Tune::exact))).size(), 1U) << "floats are rounded";
  EXPECT_GT(distinct(run_often(ranks, copy, 400, autotuning(Tune::exact))).size(), 1U);
  Communicators still = make_ranks(3, autotuning(Tune::off));
  EXPECT_EQ(distinct(run_often(still, copy, 400, autotuning(Tune::off))).size(), 1U);
  CommunicatorOptions forced = autotuning(Tune::all);
  forced.algorithm = "ring";
  forced.update_agreement_hash();
  Communicators bound = make_ranks(3, forced);
  EXPECT_EQ(distinct(run_often(bound, copy, 400, forced)).size(), 1U);
}

TEST(Autotuning, ExactModeCoversCallsWithoutRounding) {
  Call call;
  call.count = 1;
  for (std::uint32_t type = 0; type < kDataTypes; ++type) {
    call.type = static_cast<DataType>(type);
    const bool exact = std::string(name(call.type)).find("int") != std::string::npos || call.type == DataType::boolean;
    call.collective = Collective::reduce_scatter;
    EXPECT_EQ(is_tunable(call, autotuning(Tune::exact), 2), exact) << name(call.type);
    EXPECT_TRUE(is_tunable(call, autotuning(Tune::all), 2));
    EXPECT_FALSE(is_tunable(call, autotuning(Tune::off), 2));
    call.collective = Collective::scatter;
    EXPECT_TRUE(is_tunable(call, autotuning(Tune::exact), 2)) << name(call.type);
  }
}

// Ranks run calls of random collectives, sizes and roots in the same order. Calls of other classes in between must not
// disturb a class: ranks must make the same choices.
TEST(Autotuning, KeepsClassesSeparate_InAnyOrder) {
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Communicators ranks = make_ranks(4, autotuning(Tune::all));
  std::vector<std::vector<std::string>> ways(4);
  const auto statuses = on_all(ranks, [&](Communicator& communicator) -> Status {
    std::mt19937 random(seed);
    for (int i = 0; i < (kSlowMotion ? 1000 : 3000); ++i) {
      Case test = case_of(static_cast<Collective>(random() % kCollectives), 4, 65 + random() % 60);
      if (random() % 8 == 0) test.count *= 100;
      test.problem.in_place = (random() + communicator.rank()) % 2 == 0;  // Ranks may differ in this.
      test.problem.root = has_root(test.problem.collective) ? static_cast<Rank>(random() % 4) : 0;
      std::int64_t wrong = -3;
      TUTTI_CHECK_OK(run_case(communicator, test, autotuning(Tune::all), wrong));
      if (wrong != -1) return internal_error(describe(test.problem) + ": element " + std::to_string(wrong));
      ways[communicator.rank()].push_back(way_of(communicator));
    }
    return {};
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
  for (Rank rank = 1; rank < 4; ++rank) EXPECT_EQ(ways[rank], ways[0]);
}

TEST(Autotuning, ContinuesInGroups) {
  Communicators ranks = make_ranks(3, autotuning(Tune::all));
  const std::size_t count = open_case(Collective::all_reduce, 3).count;
  std::set<std::string> ways;
  for (int i = 0; i < 600; ++i) {
    std::vector<std::vector<float>> buffers(3, std::vector<float>(count, 2));
    std::vector<std::vector<float>> others(3, std::vector<float>(7'000, 3));
    std::vector<GroupedCall> calls;
    for (Rank rank = 0; rank < 3; ++rank) {
      for (auto* each : {&others[rank], &buffers[rank]}) {
        GroupedCall& grouped = calls.emplace_back();
        grouped.communicator = ranks[rank].get();
        grouped.options = autotuning(Tune::all);
        grouped.call = all_reduce(*each);
      }
    }
    const Status status = run_group(calls);
    ASSERT_TRUE(status.ok()) << status.message();
    for (Rank rank = 0; rank < 3; ++rank) {
      ASSERT_EQ(buffers[rank], std::vector<float>(count, 6)) << "operation " << i;
      ASSERT_EQ(others[rank], std::vector<float>(7'000, 9)) << "operation " << i;
      ASSERT_EQ(way_of(*ranks[rank]), way_of(*ranks[0]));
    }
    ways.insert(way_of(*ranks[0]));
  }
  EXPECT_GT(ways.size(), 1U);
}

TEST(Autotuning, IsIndependentOfSubCommunicators) {
  const CommunicatorOptions options = autotuning(Tune::all);
  Communicators ranks = make_ranks(4, options);
  const Case copy = case_of(Collective::all_gather, 4, 100);
  for (const int before : {20, 3, 50}) {
    run_often(ranks, copy, before, options);
    Communicators parts(4);
    for (const Status& status : on_all(ranks, [&](Communicator& communicator) -> Status {
           auto part = TUTTI_TRY(communicator.split(communicator.rank() < 3 ? 0 : 1, 0, options));
           parts[communicator.rank()] = std::move(part);
           return {};
         })) {
      ASSERT_TRUE(status.ok()) << status.message();
    }
    parts.pop_back();
    const auto ways = run_often(parts, case_of(Collective::all_gather, 3, 100), 40, options);
    EXPECT_EQ(distinct({ways.begin(), ways.begin() + 16}).size(), 1U);
    ASSERT_FALSE(HasFailure());
  }
}

// Rank 2 aborts before autotuning, or in one of its phases. The other ranks must report this, shrink the communicator,
// and autotune the new one.
TEST(Autotuning, EndsWithTheCommunicator) {
  const CommunicatorOptions options = autotuning(Tune::all);
  for (const int before : {5, 19, 30, 60}) {
    Communicators ranks = make_ranks(3, options);
    const Case copy = case_of(Collective::all_gather, 3, 100);
    run_often(ranks, copy, before, options);
    Communicators rest(3);
    const auto statuses = on_all(ranks, [&](Communicator& communicator) -> Status {
      if (communicator.rank() == 2) {
        communicator.abort();
        return {};
      }
      std::int64_t wrong = -3;
      Status status;
      while (status.ok()) status = run_case(communicator, copy, options, wrong);
      if (status.message().find("rank 2 aborted") == std::string::npos) return status;
      auto part = TUTTI_TRY(communicator.shrink({2}, options));
      rest[communicator.rank()] = std::move(part);
      return {};
    });
    for (const Status& status : statuses) ASSERT_TRUE(status.ok()) << status.message();
    rest.pop_back();
    run_often(rest, case_of(Collective::all_gather, 2, 100), 100, options);
    ASSERT_FALSE(HasFailure()) << before;
  }
}

// Counts differ in one call of each phase of autotuning. Both ranks must report both counts, even if one rank is about
// to exchange measurements.
TEST(Autotuning, ReportsMismatchedCalls) {
  const CommunicatorOptions options = autotuning(Tune::all);
  for (const int before : {0, 17, 18, 19, 25, 40}) {
    Communicators ranks = make_ranks(2, options);
    run_often(ranks, case_of(Collective::broadcast, 2, 100), before, options);
    const auto statuses = on_all(ranks, [&](Communicator& communicator) -> Status {
      std::int64_t wrong = -3;
      Status status;
      for (int i = 0; i < 40 && status.ok(); ++i)
        status = run_case(communicator, case_of(Collective::broadcast, 2, communicator.rank() == 0 ? 100 : 200),
                          options, wrong);
      return status;
    });
    for (const Status& status : statuses) {
      EXPECT_NE(status.message().find("broadcast(100 float32"), std::string::npos) << before << status.message();
      EXPECT_NE(status.message().find("broadcast(200 float32"), std::string::npos) << before << status.message();
    }
  }
}

TEST(Autotuning, ReportsRanksWithDifferentSettings) {
  Communicators ranks = make_ranks(2, autotuning(Tune::all));
  const auto statuses = on_all(ranks, [&](Communicator& communicator) -> Status {
    std::int64_t wrong = -3;
    const CommunicatorOptions options = autotuning(communicator.rank() == 0 ? Tune::all : Tune::off);
    return run_case(communicator, case_of(Collective::all_gather, 2, 100), options, wrong);
  });
  for (const Status& status : statuses)
    EXPECT_NE(status.message().find("(TUTTI_TUNE, which TUTTI_DETERMINISTIC"), std::string::npos) << status.message();
}

// Only rank 0 has a tuner plugin, which turns autotuning off. Ranks must report this difference, and not that the
// plugin cannot be opened.
TEST(Autotuning, ReportsRanksOfWhichOnlySomeHavePlugin) {
  std::vector<CommunicatorOptions> options(3, autotuning(Tune::all));
  options[0].tuner_plugin = "nothing";
  options[0].update_agreement_hash();
  Communicators ranks = make_ranks(3, options[1]);
  const auto statuses = on_all(ranks, [&](Communicator& communicator) -> Status {
    std::int64_t wrong = -3;
    return run_case(communicator, case_of(Collective::all_gather, 3, 100), options[communicator.rank()], wrong);
  });
  for (const Status& status : statuses)
    EXPECT_NE(status.message().find("tuner plugin (TUTTI_TUNER_PLUGIN"), std::string::npos) << status.message();
}

TEST(Autotuning, TriesMappedAlgorithms) {
  Communicators ranks = make_ranks(2, autotuning(Tune::all));
  const auto ways = run_often(ranks, case_of(Collective::all_gather, 2, 20'000), 400, autotuning(Tune::all));
  EXPECT_EQ(distinct({ways.begin(), ways.begin() + 16}), std::set<std::string>{"direct_mapped "});
  EXPECT_GT(distinct(ways).size(), 1U);
}

CommunicatorOptions keeping(const std::string& file) {
  CommunicatorOptions options = autotuning(Tune::exact);
  options.tune_file = file;
  options.version = "0.1.0";
  options.update_agreement_hash();
  return options;
}

void leave(Communicators& ranks) {
  for (const auto& rank : ranks) EXPECT_TRUE(rank->leave().ok());
  ranks.clear();
}

// Saves each candidate in turn, so that at least one differs from the tuner's default. Calls must use the saved choice
// from the first one on.
TEST(Autotuning, UsesSavedResult) {
  const Folder folder;
  const CommunicatorOptions options = keeping(folder.file());
  const Case copy = case_of(Collective::all_gather, 3, 100);
  const auto all = candidates_of(copy);
  ASSERT_GT(all.size(), 1U);
  for (const Candidate& candidate : all) {
    TunedClass tuned;
    tuned.collective = Collective::all_gather;
    tuned.size_class = size_class(400);
    tuned.candidates.push_back({std::string(candidate.choice.algorithm), candidate.choice.protocol, 1, 1, 1, 1});
    ASSERT_TRUE(add_to_tune_cache(folder.file(), {machine_name(options, Hosts::one_host(3)), {tuned}}).ok());
    Communicators ranks = make_ranks(3, options);
    const std::string way = std::string(candidate.choice.algorithm) + " " + name(candidate.choice.protocol);
    EXPECT_EQ(distinct(run_often(ranks, copy, 100, options)), std::set<std::string>{way});
    leave(ranks);
  }
}

TEST(Autotuning, SavesResult) {
  const Folder folder;
  const CommunicatorOptions options = keeping(folder.file());
  const Case copy = open_case(Collective::all_gather, 3);
  Communicators ranks = make_ranks(3, options);
  const auto ways = run_often(ranks, copy, longest(candidates_of(copy)) + 1, options);
  ASSERT_GT(distinct(ways).size(), 1U) << "all calls ran the same candidate";
  leave(ranks);
  auto cache = read_tune_cache(folder.file());
  ASSERT_TRUE(cache.ok()) << std::move(cache).status().message();
  const TuneCache::Machine* machine = cache.value().find(machine_name(options, Hosts::one_host(3)));
  ASSERT_NE(machine, nullptr);
  ASSERT_EQ(machine->classes.size(), 1U);
  EXPECT_EQ(machine->classes[0].candidates[0].algorithm + " " + name(machine->classes[0].candidates[0].protocol),
            ways.back());
  EXPECT_GT(machine->classes[0].candidates[0].measured_us, 0);
  Communicators again = make_ranks(3, options);
  EXPECT_EQ(distinct(run_often(again, copy, 100, options)), std::set<std::string>{ways.back()});
}

// Programs that end before a result is settled write nothing, so the first call warns.
TEST(Autotuning, WarnsOnce_WhenTuneFileCannotBeCreated) {
  static std::atomic<int> reported = 0;
  const Folder folder;
  const CommunicatorOptions options = keeping(folder / "missing/tuned");
  set_log_sink(
      [](std::string_view line) { reported += line.find("missing/tuned: No such file") < line.size() ? 1 : 0; });
  Communicators ranks = make_ranks(2, options);
  const Case copy = open_case(Collective::all_gather, 2);
  run_often(ranks, copy, 1, options);
  EXPECT_EQ(reported, 1);
  run_often(ranks, copy, longest(candidates_of(copy)), options);
  leave(ranks);
  EXPECT_EQ(reported, 1);
  set_log_sink(nullptr);
}

// The tune file has other contents. Autotuning must run, and must not overwrite the file.
TEST(Autotuning, IgnoresInvalidTuneFile) {
  const Folder folder;
  std::ofstream(folder.file()) << "something else\n";
  const CommunicatorOptions options = keeping(folder.file());
  Communicators ranks = make_ranks(2, options);
  const Case copy = open_case(Collective::all_gather, 2);
  run_often(ranks, copy, longest(candidates_of(copy)), options);
  leave(ranks);
  std::ifstream file(folder.file());
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line, "something else");
}

}  // namespace
}  // namespace tutti::test
