// Record of a stand-in for NVIDIA's libnccl.so.2, which tests name in TUTTI_NCCL_FALLBACK.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace tutti::test {

class StandInNccl {
 public:
  void record(const std::string& call) {
    const std::lock_guard lock(mutex_);
    calls_.push_back(call);
  }
  // Returns the calls since the last take().
  std::vector<std::string> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(calls_, {});
  }

  int failing_rank = -1;  // The rank whose ncclCommInitRank fails, or whose communicator has failed.
  // Communicators are in progress until ncclCommGetAsyncError has reported it this often; -1: for ever. Then that of
  // failing_rank fails.
  int polls = 0;

 private:
  std::mutex mutex_;
  std::vector<std::string> calls_;
};

// Record of the library at this path, which this loads.
inline StandInNccl& stand_in_nccl(const char* path) {
  void* library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return *reinterpret_cast<StandInNccl* (*)()>(::dlsym(library, "stand_in_record"))();
}

inline long count_of(const std::vector<std::string>& calls, const std::string& call) {
  return std::count(calls.begin(), calls.end(), call);
}

}  // namespace tutti::test
