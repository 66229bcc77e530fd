// Emulates a kernel built for more CPUs than a cpu_set_t holds. Defines sched_getaffinity() and sched_setaffinity(), so
// only one file of a program may include it.
#pragma once

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace tutti::test {

// During its lifetime, the affinity of the calling thread is these CPUs.
class ManyCpus {
 public:
  explicit ManyCpus(std::vector<std::uint32_t> cpus, std::size_t built_for = 4096)
      : cpus_(std::move(cpus)), built_for_(built_for) {
    now = this;
  }
  ~ManyCpus() { now = nullptr; }
  ManyCpus(const ManyCpus&) = delete;
  ManyCpus& operator=(const ManyCpus&) = delete;

  int get(std::size_t bytes, cpu_set_t* set) const {
    if (bytes * 8 < built_for_) {
      errno = EINVAL;
      return -1;
    }
    std::memset(set, 0, bytes);
    for (const std::uint32_t cpu : cpus_) CPU_SET_S(cpu, bytes, set);
    return 0;
  }
  int set(std::size_t bytes, const cpu_set_t* set) {
    cpus_.clear();
    for (std::uint32_t cpu = 0; cpu < bytes * 8; ++cpu)
      if (CPU_ISSET_S(cpu, bytes, set)) cpus_.push_back(cpu);
    return 0;
  }

  static inline thread_local ManyCpus* now = nullptr;

 private:
  std::vector<std::uint32_t> cpus_;
  std::size_t built_for_;
};

}  // namespace tutti::test

extern "C" int sched_getaffinity(pid_t thread, std::size_t bytes, cpu_set_t* set) noexcept {
  if (const auto* many = tutti::test::ManyCpus::now) return many->get(bytes, set);
  std::memset(set, 0, bytes);
  return ::syscall(SYS_sched_getaffinity, thread, bytes, set) < 0 ? -1 : 0;
}

extern "C" int sched_setaffinity(pid_t thread, std::size_t bytes, const cpu_set_t* set) noexcept {
  if (auto* many = tutti::test::ManyCpus::now) return many->set(bytes, set);
  return static_cast<int>(::syscall(SYS_sched_setaffinity, thread, bytes, set));
}
