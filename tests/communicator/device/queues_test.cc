// Warnings about threads that share a device which has fewer hardware queues than threads.
#include <mutex>
#include <thread>

#include "src/base/log.h"
#include "tests/communicator/device/device_ranks.h"

namespace tutti::test {
namespace {

constexpr std::uint32_t kQueues = 2;
std::mutex lines_mutex;
std::string lines;

// Creates threads[i] ranks in thread i. Returns the lines that are logged meanwhile.
std::string warnings_of(const std::vector<Rank>& threads) {
  lines.clear();
  set_log_sink([](std::string_view line) {
    const std::lock_guard lock(lines_mutex);
    lines += line;
  });
  const auto rig = host_rig({.queues = kQueues});
  Rank ranks = 0;
  for (const Rank own : threads) ranks += own;
  CommunicatorOptions options;
  options.update_agreement_hash();
  Communicators members = std::move(Communicator::create_all(ranks, options)).value();
  std::vector<std::unique_ptr<DeviceRanks>> driven(threads.size());
  std::vector<std::thread> running;
  Rank next = 0;
  for (std::size_t i = 0; i < threads.size(); ++i) {
    Communicators own;
    for (Rank k = 0; k < threads[i]; ++k) own.push_back(std::move(members[next++]));
    running.emplace_back([&rig, &slot = driven[i], own = std::move(own)]() mutable {
      slot = std::make_unique<DeviceRanks>(*rig, std::move(own));
    });
  }
  for (std::thread& thread : running) thread.join();
  running.clear();
  for (auto& ranks_of_thread : driven) running.emplace_back([&ranks_of_thread] { ranks_of_thread.reset(); });
  for (std::thread& thread : running) thread.join();
  set_log_sink(nullptr);
  return lines;
}

TEST(DeviceQueues, SufficeForThreadsWithSeveralRanks) { EXPECT_EQ(warnings_of({2, 2}), ""); }

TEST(DeviceQueues, WarnOnce_WhenTooFew) {
  const std::string reported = warnings_of({2, 1, 1});
  EXPECT_NE(
      reported.find("3 threads of this process drive ranks on threads of the host (device 0), which takes the work "
                    "of 2 streams"),
      std::string::npos)
      << reported;
  EXPECT_NE(reported.find("CUDA_DEVICE_MAX_CONNECTIONS"), std::string::npos);
  EXPECT_EQ(std::count(reported.begin(), reported.end(), '\n'), 1) << reported;
}

}  // namespace
}  // namespace tutti::test
