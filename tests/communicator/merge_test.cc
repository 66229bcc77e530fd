// Ranks exchange the topologies of their hosts, and one of them fails or sends an invalid topology.
#include "src/communicator/joining/merge.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tests/bootstrap/shared_unique_id.h"
#include "tests/topology/switches.h"

namespace tutti::test {
namespace {

Watch watch() { return {Deadline::after_ms(20'000)}; }

// Runs gather_hosts() as ranks do when they join, each on an emulated host. Returns the outcome on which all
// ranks agree.
std::string know(Bootstrap& bootstrap) {
  Result<Hosts> hosts = gather_hosts(bootstrap, watch());
  const bool known = hosts.ok() && hosts.value().topology() != nullptr;
  const Status agreed = bootstrap.agree(hosts.ok() ? Status() : std::move(hosts).status(), watch());
  return !agreed.ok() ? agreed.message() : known ? "known" : "unknown";
}

std::vector<std::string> join(Rank ranks, const std::function<std::string(Bootstrap&)>& odd) {
  const Meeting meeting;
  Processes processes;
  for (Rank rank = 0; rank < ranks; ++rank) {
    processes.start([&, rank]() -> std::string {
      JoinOptions options;
      options.one_host_per_rank = true;
      options.location.wants_topology = 1;
      auto joined = Bootstrap::join(meeting.id(), rank, ranks, options);
      if (!joined.ok()) return std::move(joined).status().message();
      return rank == 1 ? odd(*joined.value()) : know(*joined.value());
    });
  }
  return processes.reports();
}

// Record by which a rank announces the topology of its host, which it sends afterwards.
struct TopologyDigest {
  std::array<std::uint8_t, 24> hash{};
  std::uint64_t bytes = 0;
};

// Acts as rank 1 of two, and sends `view` as its topology. Returns the outcome on which both ranks agree.
std::string notify(Bootstrap& bootstrap, std::string view) {
  std::vector<TopologyDigest> digests(bootstrap.ranks());
  digests[1] = {{1}, view.size()};
  TUTTI_ASSERT(bootstrap.all_gather(std::as_writable_bytes(std::span(digests)), sizeof(TopologyDigest), watch()).ok());
  std::string theirs(digests[0].bytes, 0);
  TUTTI_ASSERT(bootstrap.broadcast(0, std::as_writable_bytes(std::span(theirs)), watch()).ok());
  TUTTI_ASSERT(bootstrap.broadcast(1, std::as_writable_bytes(std::span(view)), watch()).ok());
  const Status agreed = bootstrap.agree({}, watch());
  return agreed.ok() ? "known" : agreed.message();
}

TEST(TopologyExchange, SucceedsOnAllRanks) {
  for (const std::string& said : join(3, know)) EXPECT_EQ(said, "known");
}

// Rank 1 fails before peers have received its topology. All ranks must report its error.
TEST(TopologyExchange, FailsWithReasonOfFailedRank) {
  const auto odd = [](Bootstrap& bootstrap) {
    return bootstrap.agree(internal_error("no memory is left"), watch()).message();
  };
  for (const std::string& said : join(3, odd)) EXPECT_NE(said.find("no memory is left"), std::string::npos) << said;
}

TEST(TopologyExchange, Fails_WhenRankDies) {
  const auto odd = [](Bootstrap&) -> std::string { ::_exit(0); };
  const std::vector<std::string> said = join(3, odd);
  for (const Rank rank : {0U, 2U}) EXPECT_NE(said[rank].find("rank 1"), std::string::npos) << said[rank];
}

TEST(TopologyExchange, Fails_WhenTreeHasNoRoot) {
  for (const std::string& said :
       join(2, [](Bootstrap& bootstrap) { return notify(bootstrap, packed(ring_of_switches())); }))
    EXPECT_NE(said.find("reading the topology of rank 1"), std::string::npos) << said;
}

TEST(TopologyExchange, Fails_WhenTopologyIsMalformed) {
  for (const std::string& said : join(2, [](Bootstrap& bootstrap) { return notify(bootstrap, "switches"); }))
    EXPECT_NE(said.find("reading the topology of rank 1"), std::string::npos) << said;
}

}  // namespace
}  // namespace tutti::test
