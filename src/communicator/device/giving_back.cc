#include "src/communicator/device/giving_back.h"

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

// Never destroyed: communicators may end after the program's statics.
Kept& kept() {
  static Kept& of_process = *new Kept;
  return of_process;
}

}  // namespace

void note_held_stream() { ++kept().held; }
void note_let_go() { --kept().held; }

void give_back(std::function<void()> back) {
  {
    const std::lock_guard lock(kept().mutex);
    kept().all.push_back(std::move(back));
  }
  give_back_kept();
}

// Without the lock: that may take a while.
void give_back_kept() {
  std::vector<std::function<void()>> all;
  {
    const std::lock_guard lock(kept().mutex);
    if (kept().held == 0) all.swap(kept().all);
  }
  for (const std::function<void()>& back : all) back();
}

}  // namespace tutti
