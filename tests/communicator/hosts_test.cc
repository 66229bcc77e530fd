// Ranks on several emulated hosts, distributed in several ways.
#include <gtest/gtest.h>

#include "algorithms/catalogue.h"
#include "src/plan/rank_mapping.h"
#include "tests/base/case_sampling.h"
#include "tests/communicator/cases.h"

namespace tutti::test {
namespace {

using HostOf = std::vector<Rank>;

class SeveralHosts : public testing::TestWithParam<HostOf> {
 protected:
  SeveralHosts() {
    CommunicatorOptions options;
    options.timeout_ms = 60'000;
    ranks_ = std::move(Communicator::create_all(Hosts(GetParam()), options)).value();
  }

  Problem problem_of(Collective collective) const {
    Problem problem;
    problem.collective = collective;
    problem.ranks = static_cast<Rank>(ranks_.size());
    problem.root = has_root(collective) ? problem.ranks / 2 : 0;
    const RankMapping rank_mapping = rank_mapping_of(GetParam());
    if (applies(rank_mapping, problem)) problem.groups = rank_mapping.groups;
    return problem;
  }

  void run(const Problem& problem, std::size_t count, const CommunicatorOptions& options) {
    std::vector<std::int64_t> wrong(ranks_.size(), -3);
    const auto statuses = on_all(ranks_, [&](Communicator& communicator) {
      return run_case(communicator, {problem, count}, options, wrong[communicator.rank()]);
    });
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      ASSERT_TRUE(statuses[rank].ok()) << options.algorithm << ", " << describe(problem) << ": "
                                       << statuses[rank].message();
      ASSERT_EQ(wrong[rank], -1) << options.algorithm << ", " << describe(problem) << " count " << count << " rank "
                                 << rank;
    }
  }

  Communicators ranks_;
};

TEST_P(SeveralHosts, RunEveryAlgorithmCorrectly) {
  OneOf cases(5, ranks_.size());
  for (std::uint32_t c = 0; c < kCollectives; ++c) {
    Problem problem = problem_of(static_cast<Collective>(c));
    for (const Algorithm* algorithm : catalogue(problem.collective)) {
      if (accesses_peers(algorithm->name()) || !algorithm->supports(problem)) continue;
      CommunicatorOptions options;
      options.algorithm = algorithm->name();
      options.update_agreement_hash();
      for (const std::size_t count : {1, 17, 1000, 70'001}) {
        for (const bool in_place : {false, true}) {
          problem.in_place = in_place;
          if (!cases.takes()) continue;
          ASSERT_NO_FATAL_FAILURE(run(problem, count, options));
        }
        problem.in_place = false;
      }
    }
  }
}

TEST_P(SeveralHosts, RunChoicesOfTunerCorrectly) {
  OneOf cases(3, ranks_.size());
  for (std::uint32_t c = 0; c < kCollectives; ++c) {
    for (const std::size_t count : {1, 300, 2'000, 300'000}) {
      if (!cases.takes()) continue;
      ASSERT_NO_FATAL_FAILURE(run(problem_of(static_cast<Collective>(c)), count, CommunicatorOptions()));
    }
  }
}

// Excludes rank 0 and reverses the order of the others. The sub-communicator must know the hosts of its own ranks: it
// accepts a hierarchical algorithm only if they form groups.
TEST_P(SeveralHosts, AreKnown_InSubCommunicators) {
  Communicators parts(ranks_.size());
  const auto statuses = on_all(ranks_, [&](Communicator& communicator) -> Status {
    const Rank rank = communicator.rank();
    parts[rank] = TUTTI_TRY(communicator.split(rank == 0 ? 1 : 0, -static_cast<int>(rank), communicator.options()));
    return {};
  });
  for (const Status& status : statuses) ASSERT_TRUE(status.ok()) << status.message();
  parts.erase(parts.begin());
  std::reverse(parts.begin(), parts.end());  // [new rank]
  HostOf hosts(GetParam().rbegin(), GetParam().rend() - 1);
  CommunicatorOptions options;
  options.algorithm = "hierarchical";
  options.update_agreement_hash();
  const bool grouped = !rank_mapping_of(hosts).groups.empty();
  std::vector<std::int64_t> wrong(parts.size(), -1);
  const Problem problem = {.ranks = static_cast<Rank>(parts.size()), .groups = {}};
  const auto ends = on_all(parts, [&](Communicator& part) {
    return run_case(part, {problem, 1000}, options, wrong[part.rank()]);
  });
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    EXPECT_EQ(ends[rank].ok(), grouped) << ends[rank].message();
    EXPECT_EQ(wrong[rank], -1);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, SeveralHosts,
                         testing::Values(HostOf{0, 0, 1, 1}, HostOf{0, 1, 0, 1}, HostOf{0, 0, 0, 1},
                                         HostOf{0, 1, 2, 2, 1}, HostOf{0, 1, 1, 0, 1, 1, 0, 1}, HostOf{0, 1, 2}));

// Ranks outside of a sub-communicator use the same CPUs, so they must count for oversubscription.
TEST(Hosts, CountAllRanksPerCpu_InSubCommunicators) {
  using MachineShare = Hosts::MachineShare;
  std::vector<MachineShare> shares(8, MachineShare{0, 2, 0});
  shares.resize(12, MachineShare{8, 16, 0});
  const Hosts whole(std::vector<Rank>(12, 0), shares);
  EXPECT_EQ(whole.ranks_per_cpu(), 4);
  EXPECT_EQ(whole.of({0, 5}).ranks_per_cpu(), 4);
  EXPECT_EQ(whole.of({0, 5, 9}).of({0, 2}).ranks_per_cpu(), 4);
  EXPECT_EQ(whole.of({8, 9}).ranks_per_cpu(), 1) << "there is a CPU for each";
  EXPECT_EQ(Hosts::one_host(4).of({0, 1}).ranks_per_cpu(), 1) << "CPUs are unknown";
}

// Hosts of 1 to 8 ranks need so many shards that a chunk cannot have one element of each. The tuner must choose another
// algorithm instead of failing.
TEST(Hosts, MayHaveManyDifferentSizes) {
  CommunicatorOptions options;
  options.timeout_ms = 60'000;
  HostOf host_of;
  Rank host = 0;
  for (const Rank size : {1, 3, 5, 7, 8}) host_of.insert(host_of.end(), size, host++);
  Communicators ranks = std::move(Communicator::create_all(Hosts(host_of), options)).value();
  const Problem problem = {.ranks = static_cast<Rank>(ranks.size()), .groups = {}};
  OneOf cases(2);
  for (const std::size_t count : {1000, 2000, 20'000}) {
    if (!cases.takes()) continue;
    std::vector<std::int64_t> wrong(ranks.size(), -3);
    for (const Status& status : on_all(ranks, [&](Communicator& communicator) {
           return run_case(communicator, {problem, count}, options, wrong[communicator.rank()]);
         }))
      EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(wrong, std::vector<std::int64_t>(ranks.size(), -1)) << count;
  }
}

TEST(Hosts, AreRequired_ByAlgorithmsThatKnowThem) {
  struct Wanting {
    HostOf host_of;
    Collective collective;
    const char* why;
  };
  for (const auto& [host_of, collective, why] :
       {Wanting{{0, 0, 0}, Collective::all_reduce, "all these ranks are on one host"},
        Wanting{{0, 1, 2}, Collective::all_reduce, "each rank is on a host of its own"},
        Wanting{{0, 1, 0, 1}, Collective::all_gather, "requires consecutive ranks on each host for all_gather"},
        Wanting{{0, 0, 1}, Collective::all_to_all, "requires hosts with similar numbers of ranks"}}) {
    CommunicatorOptions options;
    options.timeout_ms = 60'000;
    Communicators ranks = std::move(Communicator::create_all(Hosts(host_of), options)).value();
    options.algorithm = "hierarchical";
    options.update_agreement_hash();
    std::vector<std::int64_t> wrong(ranks.size());
    const Problem problem = {.collective = collective, .ranks = static_cast<Rank>(ranks.size()), .groups = {}};
    for (const Status& status : on_all(ranks, [&](Communicator& communicator) {
           return run_case(communicator, {problem, 10}, options, wrong[communicator.rank()]);
         })) {
      EXPECT_EQ(status.code(), Code::invalid_argument);
      EXPECT_NE(status.message().find("works across hosts, but "), std::string::npos) << status.message();
      EXPECT_NE(status.message().find(why), std::string::npos) << status.message();
    }
  }
}

// Requests a protocol and an algorithm that do not fit. Requests by NCCL's variables must be ignored, so that programs
// that set them run; other requests must fail, also after the same call with NCCL's variables.
TEST(Hosts, ApplyNcclVariables_WhereTheyFit) {
  for (const char* forced : {"LL", "hierarchical", "switch_staged"}) {
    CommunicatorOptions options;
    options.timeout_ms = 60'000;
    Communicators ranks = std::move(Communicator::create_all(Hosts(HostOf{0, 1, 2}), options)).value();
    for (const bool nccls : {true, false}) {
      (forced[0] == 'L' ? options.protocol : options.algorithm) = forced;
      options.algorithm_is_from_nccl = options.protocol_is_from_nccl = nccls;
      options.update_agreement_hash();
      std::vector<std::int64_t> wrong(ranks.size(), -3);
      const Problem problem = {.ranks = static_cast<Rank>(ranks.size()), .groups = {}};
      for (const Status& status : on_all(ranks, [&](Communicator& communicator) {
             return run_case(communicator, {problem, 1000}, options, wrong[communicator.rank()]);
           }))
        EXPECT_EQ(status.ok(), nccls) << status.message();
      if (nccls) {
        EXPECT_EQ(wrong, std::vector<std::int64_t>(ranks.size(), -1)) << forced;
      }
    }
  }
}

}  // namespace
}  // namespace tutti::test
