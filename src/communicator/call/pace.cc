#include "src/communicator/call/pace.h"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>

namespace tutti {
namespace {

// Other threads compute if the thread was preempted at least once per kPreemptionNs, which is longer than a time slice
// of the scheduler, and if other threads of its process used at least 1 / kMinShare of a CPU.
constexpr std::int64_t kPreemptionNs = 10'000'000;
constexpr std::int64_t kMinShare = 16;
constexpr std::int64_t kOthersNs = 100'000'000;

// Minimum and maximum duration of the assumption that the CPU is contended. A single long yield, such as while ranks
// start, costs the minimum. The maximum bounds how often a loaded machine costs a time slice to look again.
constexpr std::int64_t kMinContentionNs = 5'000'000, kMaxContentionNs = 1'000'000'000;
// The duration doubles if the CPU was contended again within this time: longer than a call that waits for time slices.
constexpr std::int64_t kSoonNs = 100'000'000;

std::int64_t read_ns(clockid_t clock) {
  timespec time = {};
  ::clock_gettime(clock, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

}  // namespace

thread_local constinit Pace thread_pace;

void Pace::note_contention(std::int64_t now_ns) {
  if (contended_ && now_ns < contended_until_ns_) return;
  const bool soon = now_ns - contended_until_ns_ < kSoonNs;
  contended_ns_ = soon ? std::clamp(2 * contended_ns_, kMinContentionNs, kMaxContentionNs) : kMinContentionNs;
  contended_until_ns_ = now_ns + contended_ns_;
  contended_ = true;
}

void Pace::look_for_others(std::int64_t now_ns) {
  rusage usage = {};
  if (::getrusage(RUSAGE_THREAD, &usage) != 0) return;
  const Usage now = {.at_ns = now_ns,
                     .preemptions = usage.ru_nivcsw,
                     .others_ns = read_ns(CLOCK_PROCESS_CPUTIME_ID) - read_ns(CLOCK_THREAD_CPUTIME_ID)};
  const std::int64_t elapsed_ns = now.at_ns - last_.at_ns;
  const std::int64_t preemptions = now.preemptions - last_.preemptions;
  const bool preempted = preemptions > 0 && elapsed_ns <= preemptions * kPreemptionNs;
  const bool others_run = (now.others_ns - last_.others_ns) * kMinShare >= elapsed_ns;
  if (last_.at_ns != 0 && preempted && others_run) others_until_ns_ = now_ns + kOthersNs;
  last_ = now;
}

}  // namespace tutti
