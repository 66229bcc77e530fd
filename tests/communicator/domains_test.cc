// Ranks in several NUMA domains of one or several hosts. Hierarchical algorithms use the domains as groups if they are
// requested.
#include <gtest/gtest.h>

#include <string>

#include "src/communicator/control/mesh.h"
#include "tests/communicator/cases.h"

namespace tutti::test {
namespace {

struct Spread {
  std::vector<Rank> host_of, domain_of;
};

Hosts hosts_in(const Spread& spread) {
  Hosts hosts(spread.host_of);
  std::vector<Location> locations(spread.host_of.size());
  for (std::size_t rank = 0; rank < locations.size(); ++rank) locations[rank].domain = spread.domain_of[rank];
  hosts.place(locations);
  return hosts;
}

CommunicatorOptions forcing(const char* algorithm) {
  CommunicatorOptions options;
  options.timeout_ms = 60'000;
  options.algorithm = algorithm;
  options.update_agreement_hash();
  return options;
}

Communicators made(const Spread& spread) {
  return std::move(Communicator::create_all(hosts_in(spread), forcing(""))).value();
}

// Returns the first error of any rank, or "right as" and the algorithm.
std::string run(Communicators& ranks, Problem problem, const char* algorithm) {
  const CommunicatorOptions options = forcing(algorithm);
  std::string said;
  for (const std::size_t count : {1, 1000, 70'001}) {
    std::vector<std::int64_t> wrong(ranks.size(), -3);
    const auto statuses = on_all(ranks, [&](Communicator& communicator) {
      return run_case(communicator, {problem, count}, options, wrong[communicator.rank()]);
    });
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      if (!statuses[rank].ok()) return statuses[rank].message();
      if (wrong[rank] != -1) return "wrong on rank " + std::to_string(rank) + " of count " + std::to_string(count);
    }
  }
  return std::string("right as ") + ranks[0]->last_run().algorithm;
}

Problem problem_of(const Spread& spread, Collective collective) {
  return {.collective = collective, .ranks = static_cast<Rank>(spread.host_of.size()), .groups = {}};
}

TEST(NumaDomains, AreGroups_OnOneHost) {
  for (const std::vector<Rank>& domain_of :
       {std::vector<Rank>{0, 0, 1, 1}, {1, 0, 0, 1}, {0, 0, 0, 3, 3}, {2, 2, 0, 0, 1, 1}}) {
    const Spread spread = {std::vector<Rank>(domain_of.size(), 0), domain_of};
    Communicators ranks = made(spread);
    for (const char* algorithm : {"hierarchical", "hierarchical_ring"})
      EXPECT_EQ(run(ranks, problem_of(spread, Collective::all_reduce), algorithm), std::string("right as ") + algorithm)
          << testing::PrintToString(domain_of);
  }
}

TEST(NumaDomains, AreLevelBelowHosts) {
  for (const Spread& spread :
       {Spread{{0, 0, 0, 0, 1, 1, 1, 1}, {0, 0, 1, 1, 0, 0, 1, 1}}, Spread{{0, 1, 0, 1, 0, 0}, {0, 0, 1, 0, 0, 1}}}) {
    Communicators ranks = made(spread);
    EXPECT_EQ(run(ranks, problem_of(spread, Collective::all_reduce), "hierarchical"), "right as hierarchical");
    EXPECT_EQ(run(ranks, problem_of(spread, Collective::broadcast), "hierarchical"), "right as hierarchical");
  }
}

// In collectives with a block per rank, ranks of a domain must be consecutive. Otherwise the algorithm must be
// rejected.
TEST(NumaDomains, AreGroups_InCollectivesOfBlocks) {
  const Spread ordered = {{0, 0, 0, 0}, {0, 0, 1, 1}}, dealt = {{0, 0, 0, 0}, {0, 1, 0, 1}};
  Communicators ranks = made(ordered), others = made(dealt);
  for (const Collective collective : {Collective::all_gather, Collective::reduce_scatter, Collective::all_to_all}) {
    EXPECT_EQ(run(ranks, problem_of(ordered, collective), "hierarchical"), "right as hierarchical");
    EXPECT_NE(run(others, problem_of(dealt, collective), "hierarchical").find("works across hosts"), std::string::npos);
  }
}

// Domains must not change the default choice.
TEST(NumaDomains, AreUnused_WhenNotForced) {
  const Spread spread = {{0, 0, 0, 0}, {0, 0, 1, 1}};
  Communicators grouped = made(spread), plain = make_ranks(4);
  for (const Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::broadcast})
    EXPECT_EQ(run(grouped, problem_of(spread, collective), ""), run(plain, problem_of(spread, collective), ""));
}

TEST(NumaDomains, AreUnused_WhenARankHasNone) {
  const Spread spread = {{0, 0, 0, 0}, {0, 0, 1, kNoDomain}};
  Communicators ranks = made(spread);
  EXPECT_NE(run(ranks, problem_of(spread, Collective::all_reduce), "hierarchical").find("on one host"),
            std::string::npos);
}

TEST(NumaDomains, AreKnown_InSubCommunicators) {
  const Spread spread = {{0, 0, 0, 0, 0}, {0, 5, 1, 1, 5}};
  Communicators ranks = made(spread), parts(5), rests(4);
  const auto statuses = on_all(ranks, [&](Communicator& communicator) -> Status {
    const Rank rank = communicator.rank();
    parts[rank] = TUTTI_TRY(communicator.split(rank == 0 ? 1 : 0, -static_cast<int>(rank), communicator.options()));
    if (rank == 2) return {};
    rests[rank > 2 ? rank - 1 : rank] = TUTTI_TRY(communicator.shrink({2}, communicator.options()));
    return {};
  });
  for (const Status& status : statuses) ASSERT_TRUE(status.ok()) << status.message();
  const auto domains = [](const Communicator& part) {
    std::vector<std::uint32_t> all;
    for (const Location& location : part.mesh().hosts().locations()) all.push_back(location.domain);
    return all;
  };
  EXPECT_EQ(domains(*parts[4]), (std::vector<std::uint32_t>{5, 1, 1, 5}));  // In the order of keys.
  EXPECT_EQ(domains(*rests[0]), (std::vector<std::uint32_t>{0, 5, 1, 5}));
}

}  // namespace
}  // namespace tutti::test
