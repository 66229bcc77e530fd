#include "tests/ptx/machine/memory.h"

#include <algorithm>

namespace tutti::ptx {
namespace {

std::uintptr_t number_of(const std::byte* address) { return reinterpret_cast<std::uintptr_t>(address); }

constexpr std::size_t kMaxFreed = 4096;  // Ranges whose use after free is named.

std::optional<MemoryRange> find_in(const std::map<std::uintptr_t, MemoryRange>& ranges, const std::byte* address) {
  const auto found = ranges.upper_bound(number_of(address));
  if (found == ranges.end() || number_of(found->second.begin) > number_of(address)) return std::nullopt;
  return found->second;
}

}  // namespace

void AddressSpace::note(const Change& change) {
  changes_.push_back(change);
  version_.fetch_add(1, std::memory_order_acq_rel);
}

Status AddressSpace::add(const MemoryRange& range) {
  const std::lock_guard lock(mutex_);
  const std::uintptr_t begin = number_of(range.begin), end = begin + range.bytes;
  if (range.bytes == 0 || range.begin == nullptr) return invalid_argument("an empty range of memory was registered");
  const auto next = ranges_.upper_bound(begin);
  if (next != ranges_.end() && number_of(next->second.begin) < end)
    return invalid_argument("a range of memory was registered twice: " + range.name + " and " + next->second.name);
  std::erase_if(freed_, [&](const auto& old) { return old.first > begin && number_of(old.second.begin) < end; });
  ranges_[end] = range;
  if (range.kind == MemoryKind::device) ranges_[end].devices |= std::uint64_t{1} << range.device;
  note({Change::Kind::added, begin, end, range.tracks_uninitialised});
  return {};
}

Status AddressSpace::remove(const std::byte* begin) {
  const std::lock_guard lock(mutex_);
  const auto found = ranges_.upper_bound(number_of(begin));
  if (found == ranges_.end() || found->second.begin != begin)
    return invalid_argument("memory was unregistered that no range begins with");
  note({Change::Kind::removed, number_of(begin), found->first, false});
  if (freed_.size() < kMaxFreed) freed_[found->first] = found->second;
  ranges_.erase(found);
  return {};
}

Status AddressSpace::set_devices(const std::byte* begin, std::uint64_t devices) {
  const std::lock_guard lock(mutex_);
  const auto found = ranges_.upper_bound(number_of(begin));
  if (found == ranges_.end() || found->second.begin != begin)
    return invalid_argument("access was granted to memory that no range begins with");
  found->second.devices = devices;
  if (found->second.kind == MemoryKind::device) found->second.devices |= std::uint64_t{1} << found->second.device;
  version_.fetch_add(1, std::memory_order_acq_rel);
  return {};
}

void AddressSpace::mark_written(const std::byte* begin, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto next = ranges_.upper_bound(number_of(begin));
  const bool tracks = next != ranges_.end() && next->second.tracks_uninitialised;
  if (bytes > 0 && tracks) note({Change::Kind::written, number_of(begin), number_of(begin) + bytes, false});
}

std::optional<MemoryRange> AddressSpace::find(const std::byte* address) const {
  const std::lock_guard lock(mutex_);
  return find_in(ranges_, address);
}

std::optional<MemoryRange> AddressSpace::find_freed(const std::byte* address) const {
  const std::lock_guard lock(mutex_);
  return find_in(freed_, address);
}

std::vector<MemoryRange> AddressSpace::ranges() const {
  const std::lock_guard lock(mutex_);
  std::vector<MemoryRange> all;
  for (const auto& [end, range] : ranges_) all.push_back(range);
  return all;
}

std::vector<AddressSpace::Change> AddressSpace::take_changes() {
  const std::lock_guard lock(mutex_);
  return std::exchange(changes_, {});
}

}  // namespace tutti::ptx
