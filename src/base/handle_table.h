// Table behind the handles of a C interface. A handle is a number, not an address: a kind, a generation and an index
// into a table. The table detects destroyed, foreign and garbage handles without dereferencing them.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "src/base/status.h"

namespace tutti {

enum class HandleKind : std::uint64_t {
  communicator = 0x71c1,
  stream = 0x71c2,
  event = 0x71c3,
  request = 0x71c4,
  window = 0x71c5,
  nccl_communicator = 0x71c6,
};

// Handle: bits 63..48 kind, which no address has; 47..16 generation; 15..0 index.
template <typename T, HandleKind kind>
class HandleTable {
 public:
  static constexpr std::uint32_t kEntries = kind == HandleKind::request ? 1 << 16 : 1 << 12;

  static HandleTable& instance() { return table; }

  // Returns null unless insert() returned this handle and remove() has not removed it.
  T* find(const void* handle) const {
    const auto word = reinterpret_cast<std::uint64_t>(handle);
    const Entry& entry = entries_[word % kEntries];
    return entry.word.load(std::memory_order_acquire) == word && word != 0 ? entry.object : nullptr;
  }

  // Runs `body` with the object, which is not removed meanwhile. Returns false if the handle is invalid. Any thread may
  // call it.
  template <typename Body>
  bool visit(const void* handle, Body&& body) {
    const std::lock_guard lock(mutex_of(handle));
    T* object = find(handle);
    if (object != nullptr) body(*object);
    return object != nullptr;
  }

  Result<void*> insert(std::unique_ptr<T> object) {
    const std::lock_guard lock(insertion_);
    (void)registered_for_fork;
    for (std::uint32_t tries = 0; tries < kEntries; ++tries) {
      const std::uint64_t index = next_++ % kEntries;
      Entry& entry = entries_[index];
      if (entry.word.load(std::memory_order_acquire) != 0) continue;
      const std::uint64_t word = static_cast<std::uint64_t>(kind) << 48 | (next_ & 0xffffffff) << 16 | index;
      entry.object = object.release();
      entry.word.store(word, std::memory_order_release);
      return reinterpret_cast<void*>(word);
    }
    return invalid_usage("all " + std::to_string(kEntries) + " handles of this kind are in use: destroy some");
  }

  // Transfers the object to the caller. Returns null if the handle is invalid.
  std::unique_ptr<T> remove(const void* handle) {
    const std::lock_guard lock(mutex_of(handle));
    T* object = find(handle);
    if (object != nullptr) entries_[reinterpret_cast<std::uint64_t>(handle) % kEntries].word.store(0);
    return std::unique_ptr<T>(object);
  }

 private:
  struct Entry {
    std::atomic<std::uint64_t> word = 0;
    T* object = nullptr;
  };
  struct alignas(64) EntryMutex {
    std::mutex mutex;
  };

  // Threads that use different objects rarely share a mutex.
  std::mutex& mutex_of(const void* handle) {
    return mutexes_[reinterpret_cast<std::uint64_t>(handle) % mutexes_.size()].mutex;
  }

  // For the child of a fork, which lacks the threads and locks behind the handles: all become invalid. Leaks the
  // objects, whose destructors would wait for these threads.
  void forget() {
    for (Entry& entry : entries_) entry.word.store(0, std::memory_order_relaxed);
    for (EntryMutex& each : mutexes_) new (&each) EntryMutex;
    insertion_.unlock();
  }

  // Constant-initialised and never destroyed, so that find() needs no guard and works at any time.
  static HandleTable table;
  // Registered when the library is loaded, so that no fork precedes it.
  inline static const int registered_for_fork =
      ::pthread_atfork([] { table.insertion_.lock(); }, [] { table.insertion_.unlock(); }, [] { table.forget(); });

  std::mutex insertion_;
  std::uint64_t next_ = 1;  // The low 32 bits are also the generation.
  std::array<Entry, kEntries> entries_ = {};
  std::array<EntryMutex, 16> mutexes_ = {};  // Each guards the removal of the objects of its entries.
};

template <typename T, HandleKind kind>
constinit HandleTable<T, kind> HandleTable<T, kind>::table;

// For objects that any thread may remove while others use them. Returns the object, or null if the handle is invalid.
template <typename T, HandleKind kind>
std::shared_ptr<T> held(HandleTable<std::shared_ptr<T>, kind>& table, const void* handle) {
  std::shared_ptr<T> object;
  table.visit(handle, [&](const std::shared_ptr<T>& found) { object = found; });
  return object;
}

template <typename T, HandleKind kind>
Result<void*> insert(HandleTable<std::shared_ptr<T>, kind>& table, std::shared_ptr<T> object) {
  return table.insert(std::make_unique<std::shared_ptr<T>>(std::move(object)));
}

}  // namespace tutti
