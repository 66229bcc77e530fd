// Broadcast from one rank, and the locations that all ranks exchange.
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "tests/bootstrap/shared_unique_id.h"

namespace tutti::test {
namespace {

// Each rank in turn broadcasts a value of its own, then all ranks compare locations.
std::string share(Bootstrap& bootstrap) {
  for (Rank root = 0; root < bootstrap.ranks(); ++root) {
    std::vector<std::uint32_t> words(2000 + 10 * root, bootstrap.rank() == root ? root + 7 : 0);
    Status received = bootstrap.broadcast(root, std::as_writable_bytes(std::span(words)), {Deadline::after_ms(20'000)});
    if (!received.ok()) return received.message();
    for (const std::uint32_t word : words)
      if (word != root + 7) return "not what rank " + std::to_string(root) + " had";
    const Location& location = bootstrap.peer(root).location;
    const bool known = location.domain == root + 3 && gpu_of(location) == "0000:0" + std::to_string(root) + ":00.0";
    if (!known) return "rank " + std::to_string(root) + " is elsewhere";
  }
  Status status = bootstrap.barrier({Deadline::after_ms(20'000)});
  return status.ok() ? "ok" : status.message();
}

TEST(Broadcast, ReachesAllRanks_FromAnyRoot) {
  for (const Rank ranks : {1U, 2U, 3U, 6U, 9U}) {
    SCOPED_TRACE(ranks);
    Meeting point;
    Processes processes;
    for (Rank rank = 0; rank < ranks; ++rank) {
      processes.start([&, rank] {
        JoinOptions options;
        options.location.domain = rank + 3;
        set_gpu(options.location, "0000:0" + std::to_string(rank) + ":00.0");
        Result<std::unique_ptr<Bootstrap>> joined = Bootstrap::join(point.id(), rank, ranks, options);
        return joined.ok() ? share(*joined.value()) : std::move(joined).status().message();
      });
    }
    for (const std::string& words : processes.reports()) EXPECT_EQ(words, "ok");
  }
}

}  // namespace
}  // namespace tutti::test
