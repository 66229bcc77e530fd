#include "src/communicator/joining/probe.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/base/clock.h"
#include "src/base/duration.h"
#include "src/base/log.h"
#include "src/communicator/joining/bandwidth_probe.h"

namespace tutti {
namespace {

// Limit of the total time, except for one message and one stream. No step begins that would exceed it.
constexpr double kBudgetUs = 40'000;
// Time for messages, and for streams from one rank of each host.
constexpr double kFirstPartUs = 0.4 * kBudgetUs;
// Maximum share of time spent waiting for a CPU. Above it, links appear slower than they are.
constexpr double kMaxWaited = 0.5;
constexpr std::uint64_t kMessageBytes = 8;
constexpr int kMessages = 9;
constexpr double kMessagesUs = 4'000;  // For all messages except the first.
constexpr std::uint64_t kUnitBytes = 1 << 10;
constexpr std::uint64_t kStreamBytes = 2 << 20;   // Bytes of a stream per host.
constexpr std::uint64_t kSlackBytes = 288 << 10;  // More than a rate limiter lets pass in one burst.
constexpr std::uint64_t kWindowBytes = 8 << 10;   // 7 ms at 10 Mbit/s.
constexpr double kStreamUs = 3'000;               // Minimum duration. A stream lasts longer until enough has arrived.
constexpr int kStreams = 5;                       // Maximum number. The first one warms up.

// Record that ranks exchange: plain data of fixed width.
struct ProbeRecord {
  Streamed seen;
  double elapsed_us = 0;
  double waited_us = 0;  // Time spent waiting for a CPU.
  std::uint32_t takes_part = 0;
  std::uint32_t failed = 0;
};
static_assert(sizeof(ProbeRecord) == 64);

// Returns how long this thread has been runnable without a CPU, in microseconds; 0 if the system does not report it.
double waited_us() {
  double ran_ns = 0, waited_ns = 0;
  std::ifstream file("/proc/thread-self/schedstat");
  return file >> ran_ns >> waited_ns ? waited_ns / 1000 : 0;
}

class Probe {
 public:
  Probe(Bootstrap& bootstrap, const Hosts& hosts, const StreamRing& ring, const Watch& watch)
      : bootstrap_(bootstrap), hosts_(hosts), ring_(ring), watch_(watch) {}

  double elapsed_us() const { return elapsed_us_; }
  // Maximum over all ranks.
  double waited_us() const { return waited_us_; }

  // Returns the time of a small message on the slowest rank. The first message may include the wake-up of a thread. On
  // links with high latency there is no time for a second one.
  Result<double> message_us() {
    const double first = TUTTI_TRY(messages_us(1));
    if (!fits(kFirstPartUs)) return first;
    const int more = std::clamp(static_cast<int>(kMessagesUs / first), 1, kMessages - 1);
    const double others = TUTTI_TRY(messages_us(more));
    return std::min(first, others);
  }

  // Returns the send rate of a host, with one rank of each host or with all ranks that take part. Takes the maximum
  // over the streams, without the first if there are others. A rank starts no stream that would not end in time.
  Result<double> gbytes_per_s(bool all, double message_us, double end_us) {
    double max = TUTTI_TRY(one_stream(all, message_us)), shortest_us = last_us_;
    for (int i = 1; i < kStreams && elapsed_us_ + std::min(shortest_us, 2 * kStreamUs) <= end_us; ++i) {
      const double seen = TUTTI_TRY(one_stream(all, message_us));
      max = i == 1 ? seen : std::max(max, seen);
      shortest_us = std::min(shortest_us, last_us_);  // Later streams may have been delayed by unrelated work.
    }
    return max;
  }

  // Whether another step as long as the last one would end before `end_us`.
  bool fits(double end_us) const { return elapsed_us_ + last_us_ <= end_us; }

 private:
  // Returns the median time of `times` messages, sent one after the other.
  Result<double> messages_us(int times) {
    StreamLimits limits;
    limits.unit_bytes = limits.max_bytes = kMessageBytes;
    std::vector<double> took_us(static_cast<std::size_t>(times));
    const bool takes_part = ring_.next != nullptr && ring_.index == 0;
    Status own;
    for (double& us : took_us) {
      if (!takes_part || !own.ok()) break;
      Result<Streamed> seen = stream(ring_, limits, watch_);
      if (seen.ok()) us = seen.value().us;
      else own = std::move(seen).status();
    }
    std::nth_element(took_us.begin(), took_us.begin() + times / 2, took_us.end());
    Streamed median;
    median.us = took_us[static_cast<std::size_t>(times / 2)];
    const std::vector<ProbeRecord> records = TUTTI_TRY(reported(std::move(own), median, takes_part));
    double slowest = 1e-3;
    for (const ProbeRecord& record : records) slowest = std::max(slowest, record.seen.us);
    return slowest;
  }

  // Links with high latency need a larger window and a longer stream.
  StreamLimits limits_of(std::uint32_t members, double message_us) const {
    const double turn_us = 2 * message_us;
    const auto window = static_cast<std::uint64_t>(kWindowBytes * std::clamp(turn_us / 250, 1.0, 6.0));
    StreamLimits limits;
    limits.unit_bytes = kUnitBytes;
    limits.max_bytes = std::max<std::uint64_t>(kStreamBytes / members / kUnitBytes, 1) * kUnitBytes;
    limits.min_us = std::clamp(12 * turn_us, kStreamUs, 8 * kStreamUs);
    limits.max_us = std::max(limits.min_us, 20'000.0);
    limits.window_bytes = std::max(window / members, kUnitBytes);
    limits.gone_bytes = gone_bytes_ / members;
    limits.slack_bytes = kSlackBytes / members;
    limits.growth = std::clamp(turn_us / 1'000, 1.0 / 4, 1.0);
    return limits;
  }

  // Rate of the slowest host over the later half of its ranks' streams. Earlier, a rate limiter may allow a burst.
  Result<double> one_stream(bool all, double message_us) {
    const std::uint32_t members = all ? ring_.ranks : 1;
    const bool takes_part = ring_.next != nullptr && ring_.index < members;
    Result<Streamed> seen = takes_part ? stream(ring_, limits_of(members, message_us), watch_) : Streamed();
    const Streamed own = seen.ok() ? seen.value() : Streamed();
    const std::vector<ProbeRecord> records =
        TUTTI_TRY(reported(seen.ok() ? Status() : std::move(seen).status(), own, takes_part));
    std::map<Rank, double> hosts;  // In bytes per us, by the first rank of each host.
    std::uint64_t min_sent = kStreamBytes;
    for (Rank rank = 0; rank < records.size(); ++rank) {
      if (records[rank].takes_part == 0) continue;
      hosts[hosts_.first_rank_of_host(rank)] += rate_of(records[rank].seen, kSlackBytes / members);
      min_sent = std::min(min_sent, records[rank].seen.sent_bytes);
    }
    gone_bytes_ += min_sent * members;
    const auto slowest =
        std::min_element(hosts.begin(), hosts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    return slowest->second / 1000;
  }

  // Returns the rate in bytes per us. A link carries at least the bytes beyond the slack, even if the later half was
  // delayed.
  static double rate_of(const Streamed& seen, std::uint64_t slack_bytes) {
    const std::uint64_t beyond = std::max(seen.bytes, slack_bytes) - slack_bytes;
    return std::max(static_cast<double>(seen.late_bytes) / std::max(seen.late_us, 1e-3),
                    static_cast<double>(beyond) / std::max(seen.us, 1e-3));
  }

  // Exchanges results and durations. All ranks get the same records. If one rank failed, fails on all ranks.
  Result<std::vector<ProbeRecord>> reported(Status own, const Streamed& seen, bool takes_part) {
    if (!own.ok()) hang_up();
    std::vector<ProbeRecord> records(bootstrap_.ranks());
    records[bootstrap_.rank()] = {seen, static_cast<double>(now_ns() - began_ns_) / 1000,
                                  tutti::waited_us() - waited_before_us_, takes_part ? 1U : 0U, own.ok() ? 0U : 1U};
    TUTTI_CHECK_OK(bootstrap_.all_gather(std::as_writable_bytes(std::span(records)), sizeof(ProbeRecord), watch_));
    const bool failed = std::any_of(records.begin(), records.end(), [](const auto& record) { return record.failed; });
    if (failed) TUTTI_CHECK_OK(bootstrap_.agree(std::move(own), watch_));
    const double before_us = elapsed_us_;
    for (const ProbeRecord& record : records) {
      elapsed_us_ = std::max(elapsed_us_, record.elapsed_us);
      waited_us_ = std::max(waited_us_, record.waited_us);
    }
    last_us_ = elapsed_us_ - before_us;
    return records;
  }

  // Closes the connections, so that ranks that wait for this rank fail at once.
  void hang_up() const {
    ::shutdown(ring_.next->socket.get(), SHUT_RDWR);
    ::shutdown(ring_.previous->socket.get(), SHUT_RDWR);
  }

  Bootstrap& bootstrap_;
  const Hosts& hosts_;
  const StreamRing& ring_;
  const Watch& watch_;
  const std::int64_t began_ns_ = now_ns();
  const double waited_before_us_ = tutti::waited_us();
  double waited_us_ = 0;
  // Elapsed time when the slowest rank finished the last step, and the duration of that step.
  double elapsed_us_ = 0, last_us_ = 0;
  std::uint64_t gone_bytes_ = 0;  // Bytes sent by each host.
};

Result<bool> wanted_by_all(Bootstrap& bootstrap, bool wanted, const Watch& watch) {
  std::vector<std::uint64_t> wants(bootstrap.ranks());
  wants[bootstrap.rank()] = wanted ? 1 : 0;
  TUTTI_CHECK_OK(bootstrap.all_gather(std::as_writable_bytes(std::span(wants)), sizeof(std::uint64_t), watch));
  return std::all_of(wants.begin(), wants.end(), [](std::uint64_t each) { return each == 1; });
}

// Rounds to powers of the square root of 2, so that runs with almost the same results choose the same algorithms.
double stepped(double value) { return std::exp2(std::round(2 * std::log2(value)) / 2); }

}  // namespace

Result<std::optional<NetworkFigures>> probe_network(Bootstrap& bootstrap, const Hosts& hosts,
                                                    std::span<const PeerSocket> peer_sockets, bool wanted,
                                                    const Watch& watch) {
  if (hosts.is_one_host()) return std::optional<NetworkFigures>();
  const bool agreed = TUTTI_TRY(wanted_by_all(bootstrap, wanted, watch));
  if (!agreed) return std::optional<NetworkFigures>();
  const StreamRing ring = ring_of(hosts, bootstrap.rank(), peer_sockets);
  Probe probe(bootstrap, hosts, ring, watch);
  const double message_us = TUTTI_TRY(probe.message_us());
  const double of_rank = TUTTI_TRY(probe.gbytes_per_s(false, message_us, kFirstPartUs));
  double of_host = of_rank;
  if (ring.ranks > 1 && probe.fits(kBudgetUs))
    of_host = TUTTI_TRY(probe.gbytes_per_s(true, message_us, 0.8 * kBudgetUs));
  if (probe.waited_us() > kMaxWaited * probe.elapsed_us()) {
    if (bootstrap.rank() == 0)
      log(LogLevel::info, "links between hosts were not measured: a rank waited for a CPU for %.3g of %.3g ms",
          probe.waited_us() / 1000, probe.elapsed_us() / 1000);
    return std::optional<NetworkFigures>();
  }
  NetworkFigures figures;
  figures.rank_gbytes_per_s = stepped(std::min(of_rank, of_host));
  figures.host_gbytes_per_s = stepped(of_host);
  figures.message_us = stepped(message_us);
  figures.took_us = probe.elapsed_us();
  return std::optional(figures);
}

std::string describe(const NetworkFigures& figures) {
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(),
                "between hosts a message takes %s, a rank sends %.3g GB/s, a host %.3g GB/s, seen in %.3g ms",
                describe_us(figures.message_us).c_str(), figures.rank_gbytes_per_s, figures.host_gbytes_per_s,
                figures.took_us / 1000);
  return text.data();
}

}  // namespace tutti
