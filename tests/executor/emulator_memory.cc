#include "tests/executor/emulator_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace tutti::test {

Result<std::byte*> EmulatorMemory::take(const FreeList::Kind& kind) {
  const std::lock_guard lock(mutex_);
  if (std::byte* kept = kept_.take(kind)) {
    Allocation& again = all_.at(kept);
    again.taken = true;
    // Untouched pages then cost nothing either.
    if (::madvise(kept, again.segment.size(), MADV_REMOVE) != 0) std::memset(kept, 0, again.segment.size());
    return kept;
  }
  if (kind.bytes > left()) {
    return system_error("allocate " + std::to_string(kind.bytes) + " bytes on " + name_ + ", which has " +
                        std::to_string(left()) + " left");
  }
  Segment made = TUTTI_TRY(Segment::create("tutti-device", std::max<std::size_t>(kind.bytes, 1)));
  std::byte* memory = made.data();
  all_.emplace(memory, Allocation{std::move(made), kind});
  return memory;
}

std::size_t EmulatorMemory::left() const {
  std::size_t left = bytes_;
  for (const auto& [memory, allocation] : all_) left -= allocation.kind.bytes;
  return left;
}

FreeList::Kind EmulatorMemory::free_deferred(std::byte* memory) {
  const auto found = all_.find(memory);
  TUTTI_ASSERT(found != all_.end() && found->second.taken);
  found->second.taken = false;
  return found->second.kind;
}

void EmulatorMemory::keep(std::byte* memory) {
  const std::lock_guard lock(mutex_);
  kept_.keep(memory, free_deferred(memory));
}

void EmulatorMemory::set_aside(std::byte* memory) {
  const std::lock_guard lock(mutex_);
  kept_.set_aside(memory, free_deferred(memory));
}

void EmulatorMemory::free(std::byte* memory) {
  const std::lock_guard lock(mutex_);
  (void)free_deferred(memory);
  all_.erase(memory);
}

void EmulatorMemory::free_kept() {
  const std::lock_guard lock(mutex_);
  for (std::byte* memory : kept_.take_freeable()) all_.erase(memory);
}

std::optional<EmulatorMemory::Range> EmulatorMemory::find(const std::byte* memory, std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  const auto behind = all_.upper_bound(const_cast<std::byte*>(memory));
  if (behind == all_.begin()) return std::nullopt;
  const auto& [begin, allocation] = *std::prev(behind);
  if (!allocation.taken || memory + bytes > begin + allocation.kind.bytes) return std::nullopt;
  return Range{begin, allocation.segment.size(), allocation.segment.descriptor(), allocation.kind.shared};
}

Result<File> EmulatorMemory::file_of(std::byte* memory) const {
  const std::lock_guard lock(mutex_);
  return all_.at(memory).segment.duplicate();
}

EmulatorMemory::Usage EmulatorMemory::taken() const {
  const std::lock_guard lock(mutex_);
  Usage usage;
  for (const auto& [memory, allocation] : all_) {
    if (!allocation.taken) continue;
    ++usage.allocations;
    usage.bytes += allocation.kind.bytes;
  }
  return usage;
}

EmulatorMemory::Usage EmulatorMemory::taken_or_kept() const {
  const std::lock_guard lock(mutex_);
  return {all_.size(), bytes_ - left()};
}

}  // namespace tutti::test
