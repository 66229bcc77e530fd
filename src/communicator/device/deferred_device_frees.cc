#include "src/communicator/device/deferred_device_frees.h"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace tutti {
namespace {

struct Deferred {
  std::atomic<std::uint32_t> held{0};
  std::mutex mutex;
  std::vector<std::function<void()>> all;
};

// Never destroyed: communicators may outlive the program's static objects.
Deferred& deferred() {
  static Deferred& of_process = *new Deferred;
  return of_process;
}

}  // namespace

void note_held_stream() { ++deferred().held; }
void note_released_stream() { --deferred().held; }

void free_deferred(std::function<void()> back) {
  {
    const std::lock_guard lock(deferred().mutex);
    deferred().all.push_back(std::move(back));
  }
  free_retained();
}

// Runs the frees without the lock, because they may take long.
void free_retained() {
  std::vector<std::function<void()>> all;
  {
    const std::lock_guard lock(deferred().mutex);
    if (deferred().held == 0) all.swap(deferred().all);
  }
  for (const std::function<void()>& back : all) back();
}

}  // namespace tutti
