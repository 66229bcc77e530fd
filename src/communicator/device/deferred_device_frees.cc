#include "src/communicator/device/deferred_device_frees.h"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace tutti {
namespace {

struct Kept {
  std::atomic<std::uint32_t> held{0};
  std::mutex mutex;
  std::vector<std::function<void()>> all;
};

// Never destroyed: communicators may outlive the program's static objects.
Kept& kept() {
  static Kept& of_process = *new Kept;
  return of_process;
}

}  // namespace

void note_held_stream() { ++kept().held; }
void note_let_go() { --kept().held; }

void free_deferred(std::function<void()> back) {
  {
    const std::lock_guard lock(kept().mutex);
    kept().all.push_back(std::move(back));
  }
  free_retained();
}

// Runs the frees without the lock, because they may take long.
void free_retained() {
  std::vector<std::function<void()>> all;
  {
    const std::lock_guard lock(kept().mutex);
    if (kept().held == 0) all.swap(kept().all);
  }
  for (const std::function<void()>& back : all) back();
}

}  // namespace tutti
