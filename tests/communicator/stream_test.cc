// Streams that measure bandwidth along a ring. A stream ends where its sender ends it, and reads no data of the next
// stream.
#include "src/communicator/joining/bandwidth_probe.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <thread>
#include <utility>
#include <vector>

namespace tutti::test {
namespace {

// Two ranks on different hosts, with one connection for both directions.
class BandwidthStream : public testing::Test {
 protected:
  void SetUp() override {
    auto ends = open_socket_pair(SOCK_STREAM);
    ASSERT_TRUE(ends.ok());
    peer_sockets_[0].socket = std::move(ends.value().first);
    peer_sockets_[1].socket = std::move(ends.value().second);
    for (std::size_t i = 0; i < 2; ++i) {
      rings_[i].next = rings_[i].previous = &peer_sockets_[i];
      rings_[i].ranks = 1;
    }
  }

  // Runs `times` streams on each rank. Returns the results, or none for a rank that failed.
  std::array<std::vector<Streamed>, 2> run(const std::array<StreamLimits, 2>& limits, int times) {
    std::array<std::vector<Streamed>, 2> seen;
    const auto both = [&](std::size_t i) {
      for (int time = 0; time < times; ++time) {
        const Watch watch = {Deadline::after_ms(60'000)};
        Result<Streamed> one = stream(rings_[i], limits[i], watch);
        if (!one.ok()) return seen[i].clear();
        seen[i].push_back(one.value());
      }
    };
    std::thread other([&] { both(1); });
    both(0);
    other.join();
    return seen;
  }

  bool is_empty(std::size_t i) const {
    char byte = 0;
    return ::recv(peer_sockets_[i].socket.get(), &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
  }

  std::array<PeerSocket, 2> peer_sockets_;
  std::array<StreamRing, 2> rings_;
};

StreamLimits limits_of(std::uint64_t unit_bytes, std::uint64_t max_bytes) {
  StreamLimits limits;
  limits.unit_bytes = unit_bytes;
  limits.max_bytes = max_bytes;
  limits.min_us = limits.max_us = 1e9;
  limits.window_bytes = max_bytes;
  return limits;
}

// Runs 2000 short streams. A rank often completes a stream and begins the next one while the other rank still reads.
TEST_F(BandwidthStream, DoesNotReadNextStream) {
  const StreamLimits limits = limits_of(8, 8);
  const auto seen = run({limits, limits}, 2000);
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(seen[i].size(), 2000U);
    for (const Streamed& one : seen[i]) ASSERT_EQ(one.bytes, 8U);
    EXPECT_TRUE(is_empty(i));
  }
}

TEST_F(BandwidthStream, SendsAll_WhenTimeSuffices) {
  const StreamLimits limits = limits_of(1024, 300 * 1024);
  const auto seen = run({limits, limits}, 1);
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(seen[i].size(), 1U);
    EXPECT_EQ(seen[i][0].bytes, limits.max_bytes);
    EXPECT_EQ(seen[i][0].sent_bytes, limits.max_bytes);
    EXPECT_LE(seen[i][0].late_bytes, seen[i][0].bytes);
    EXPECT_LE(seen[i][0].us / 2, seen[i][0].late_us);
    EXPECT_TRUE(is_empty(i));
  }
}

// The time of one sender is 0, so it sends one unit. It must still receive everything from the other rank.
TEST_F(BandwidthStream, EndsWhereSenderEnds) {
  const StreamLimits long_ones = limits_of(1024, 300 * 1024);
  StreamLimits short_ones = long_ones;
  short_ones.max_us = 0;
  const auto seen = run({short_ones, long_ones}, 1);
  ASSERT_EQ(seen[0].size() + seen[1].size(), 2U);
  EXPECT_EQ(seen[0][0].sent_bytes, 1024U);
  EXPECT_EQ(seen[1][0].bytes, 1024U);
  EXPECT_EQ(seen[0][0].bytes, long_ones.max_bytes);
  EXPECT_EQ(seen[1][0].sent_bytes, long_ones.max_bytes);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(is_empty(i));
}

}  // namespace
}  // namespace tutti::test
