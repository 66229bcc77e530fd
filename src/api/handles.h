// Table behind the C handles. A handle is a number, not an address: a kind, a generation and an index into a table.
// So a destroyed, foreign or garbage handle is recognised without being dereferenced.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "src/base/status.h"

namespace tutti {

enum class HandleKind : std::uint64_t { communicator = 0x71c1, stream = 0x71c2, event = 0x71c3 };

// fork() leaves a child without the threads and locks that handles stand for: all of them become invalid there.
// Calls the three functions around every fork from now on.
void call_around_fork(void (*prepare)(), void (*parent)(), void (*child)());

// Handle: bits 63..48 kind, so that it is no address; 47..16 generation; 15..0 index.
template <typename T, HandleKind kind>
class HandleTable {
 public:
  static HandleTable& instance() { return table; }

  // Null unless the handle is one that insert() gave and remove() has not taken.
  T* find(const void* handle) const {
    const auto word = reinterpret_cast<std::uint64_t>(handle);
    const Entry& entry = entries_[word % kEntries];
    return entry.word.load(std::memory_order_acquire) == word && word != 0 ? entry.object : nullptr;
  }

  // For calls of any thread: the object stays for as long as `body` runs. False if the handle is none.
  template <typename Body>
  bool visit(const void* handle, Body&& body) {
    const std::lock_guard lock(mutex_);
    T* object = find(handle);
    if (object != nullptr) body(*object);
    return object != nullptr;
  }

  Result<void*> insert(std::unique_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(survives_fork_, true)) {
      call_around_fork([] { table.mutex_.lock(); }, [] { table.mutex_.unlock(); }, [] { table.forget(); });
    }
    for (std::uint32_t tries = 0; tries < kEntries; ++tries) {
      const std::uint64_t index = next_++ % kEntries;
      Entry& entry = entries_[index];
      if (entry.word.load(std::memory_order_relaxed) != 0) continue;
      const std::uint64_t word = static_cast<std::uint64_t>(kind) << 48 | (next_ & 0xffffffff) << 16 | index;
      entry.object = object.release();
      entry.word.store(word, std::memory_order_release);
      return reinterpret_cast<void*>(word);
    }
    return invalid_usage("all " + std::to_string(kEntries) + " handles of this kind are in use: destroy some");
  }

  // The caller owns the object from now on; null if the handle is none.
  std::unique_ptr<T> remove(const void* handle) {
    const std::lock_guard lock(mutex_);
    T* object = find(handle);
    if (object != nullptr) entries_[reinterpret_cast<std::uint64_t>(handle) % kEntries].word.store(0);
    return std::unique_ptr<T>(object);
  }

 private:
  static constexpr std::uint32_t kEntries = 1 << 12;
  struct Entry {
    std::atomic<std::uint64_t> word = 0;
    T* object = nullptr;
  };

  // The objects stay where they are: their destructors would wait for threads that the child does not have.
  void forget() {
    for (Entry& entry : entries_) entry.word.store(0, std::memory_order_relaxed);
    mutex_.unlock();
  }

  static HandleTable table;  // Initialised by the compiler, and never destroyed: found without a guard, at any time.

  std::mutex mutex_;
  bool survives_fork_ = false;
  std::uint64_t next_ = 1;  // Also the generation.
  std::array<Entry, kEntries> entries_ = {};
};

template <typename T, HandleKind kind>
constinit HandleTable<T, kind> HandleTable<T, kind>::table;

}  // namespace tutti
