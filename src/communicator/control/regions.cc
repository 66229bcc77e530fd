#include "src/communicator/control/regions.h"

#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <mutex>
#include <string>

#include "src/base/pages.h"
#include "src/communicator/control/address_space.h"

namespace tutti {
namespace {

// Payload of a region frame.
struct RegionOffer {
  std::uint64_t id;
  std::uint64_t bytes;
};

// Creates a segment that keeps its descriptor, since pass() sends it.
Result<Segment> make_memory(std::size_t bytes) { return Segment::create("tutti-memory", bytes, Forked::kept); }

std::string at(const std::byte* memory) {
  char text[32];
  std::snprintf(text, sizeof text, "%p", static_cast<const void*>(memory));
  return text;
}

}  // namespace

// Never destroyed, since threads and destructors that run during exit() may still use its memory. A fork waits for the
// lock, so that the child has a consistent registry.
Regions& Regions::of_process() {
  static Regions& instance = []() -> Regions& {
    static auto* made = new Regions;
    const auto unlock = [] { made->mutex_.unlock(); };
    ::pthread_atfork([] { made->mutex_.lock(); }, unlock, unlock);
    return *made;
  }();
  return instance;
}

namespace {

// Created when the library is loaded. If the first use created it, a fork meanwhile would
// leave the child waiting forever.
[[maybe_unused]] const Regions& made_at_load = Regions::of_process();

}  // namespace

Result<std::byte*> Regions::allocate(std::size_t bytes) {
  constexpr std::size_t kMaxBytes = std::size_t{1} << 47;  // Address space of a process on x86-64.
  const std::size_t page = mapped_page_bytes();
  if (bytes == 0 || bytes > kMaxBytes - page) {
    return invalid_argument("size is " + std::to_string(bytes) +
                            (bytes == 0 ? ": pass the bytes that are wanted"
                                        : ", more than there is address space; it may be a negative value"));
  }
  const std::size_t whole = round_up(bytes, page);
  Segment memory = TUTTI_TRY(make_memory(whole));
  std::byte* data = memory.data();
  const std::lock_guard lock(mutex_);
  regions_[data] = Region{next_id_++, std::move(memory), bytes, Origin::allocated};
  return data;
}

Status Regions::free(std::byte* memory) {
  const std::lock_guard lock(mutex_);
  const auto found = regions_.find(memory);
  if (found != regions_.end() && found->second.origin == Origin::enrolled)
    return invalid_argument("memory " + at(memory) + " is registered, not allocated here: call tutti_mem_deregister");
  if (found == regions_.end()) {
    return invalid_argument("memory " + at(memory) + " was not made by tutti_mem_alloc, or is freed already");
  }
  regions_.erase(found);
  ++withdrawn_;
  return {};
}

// Maps a shared file over the private pages, which keep their address.
Status Regions::register_memory(std::byte* memory, std::size_t bytes) {
  const std::size_t page = mapped_page_bytes();
  if (reinterpret_cast<std::uintptr_t>(memory) % page != 0 || bytes == 0 || bytes % page != 0) {
    return invalid_argument("memory " + at(memory) + " of " + std::to_string(bytes) + " bytes is not whole pages of " +
                            std::to_string(page) + " bytes");
  }
  if (bytes > std::numeric_limits<std::uintptr_t>::max() - reinterpret_cast<std::uintptr_t>(memory)) {
    return invalid_argument("memory " + at(memory) + " of " + std::to_string(bytes) +
                            " bytes is more than there is address space");
  }
  const std::lock_guard lock(mutex_);  // Held to the end, since another thread may register the same memory.
  if (overlaps(memory, bytes)) {
    return invalid_usage("memory " + at(memory) + " of " + std::to_string(bytes) +
                         " bytes overlaps a registered buffer, or is part of memory from tutti_mem_alloc");
  }
  TUTTI_CHECK_OK(check_ordinary(memory, bytes));
  // Allocates the map node before the memory moves. After the move, no step may fail.
  std::map<const std::byte*, Region> made;
  Region& region = made[memory];
  region.memory = TUTTI_TRY(make_memory(bytes));
  region.bytes = bytes;
  region.origin = Origin::enrolled;
  std::memcpy(region.memory.data(), memory, bytes);
  TUTTI_CHECK_OK(region.memory.move_to(memory));
  region.id = next_id_++;
  regions_.merge(made);
  return {};
}

bool Regions::overlaps(const std::byte* memory, std::size_t bytes) const {
  const auto after = regions_.lower_bound(memory + bytes);
  if (after == regions_.begin()) return false;
  const auto& [start, region] = *std::prev(after);
  return start + region.memory.size() > memory;
}

Status Regions::deregister_memory(std::byte* memory) {
  const std::lock_guard lock(mutex_);
  const auto found = regions_.find(memory);
  if (found != regions_.end() && found->second.origin == Origin::allocated)
    return invalid_argument("memory " + at(memory) + " comes from tutti_mem_alloc: call tutti_mem_free");
  if (found == regions_.end()) {
    return invalid_argument("memory " + at(memory) + " was not registered by tutti_mem_register");
  }
  Segment& shared = found->second.memory;
  Status there = check_shared(memory, shared.size(), shared.descriptor());
  if (there.ok()) {
    TUTTI_CHECK_OK(shared.make_private().during("deregistering memory " + at(memory)));
  } else if (there.code() == Code::system) {
    return there;
  } else {  // The address now belongs to another mapping.
    lost_.push_back(std::move(shared));
    lost_.back().close_descriptor();
  }
  regions_.erase(found);
  ++withdrawn_;
  return std::move(there).during("deregistering memory " + at(memory));
}

std::optional<BufferReference> Regions::find(const std::byte* memory, std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  auto after = regions_.upper_bound(memory);
  if (after == regions_.begin()) return std::nullopt;
  const auto& [start, region] = *--after;
  const auto offset = static_cast<std::size_t>(memory - start);
  if (offset >= region.bytes || bytes > region.bytes - offset) return std::nullopt;
  return BufferReference{region.id, offset};
}

Result<bool> Regions::pass(std::uint64_t region, Mesh& mesh, Rank peer) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [start, known] : regions_) {
    if (known.id != region) continue;
    const RegionOffer offer = {known.id, known.memory.size()};
    TUTTI_CHECK_OK(mesh.send(peer, frame_of(FrameKind::region, offer), known.memory.descriptor()));
    return true;
  }
  return false;
}

bool Regions::holds(std::uint64_t region) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(regions_.begin(), regions_.end(), [&](const auto& entry) { return entry.second.id == region; });
}

bool PassedRegions::pass(std::uint64_t region) {
  for (Rank& peer = holders_[region]; peer < ranks_; ++peer) {
    if (peer == self_) continue;
    const auto passed = Regions::of_process().pass(region, mesh_, peer);
    if (!passed.ok() || !passed.value()) return false;
    ++messages_;
  }
  return true;
}

void PassedRegions::withdraw() {
  const std::uint64_t withdrawn = Regions::of_process().withdrawn();
  if (withdrawn == seen_) return;
  bool all = true;
  for (auto entry = holders_.begin(); entry != holders_.end();) {
    const bool reported = !Regions::of_process().holds(entry->first) && withdraw(entry->first, entry->second);
    all = all && (reported || Regions::of_process().holds(entry->first));
    entry = reported ? holders_.erase(entry) : std::next(entry);
  }
  if (all) seen_ = withdrawn;
}

// Proceeds from the last holder to the first, so that the remaining holders are again all ranks below one. Returns
// false if a socket is full.
bool PassedRegions::withdraw(std::uint64_t region, Rank& holders) {
  const Frame frame = frame_of(FrameKind::withdrawal, region);
  for (; holders > 0; --holders) {
    if (holders - 1 == self_) continue;
    if (!mesh_.send(holders - 1, frame).ok()) return false;
    ++messages_;
  }
  return true;
}

Status PeerRegions::drop(Rank peer, const Frame& frame) {
  const auto region = payload_of<std::uint64_t>(frame);
  if (!region) return invalid_usage("rank " + std::to_string(peer) + " sent a broken withdrawal of a region");
  regions_.erase({peer, *region});
  return {};
}

Status PeerRegions::adopt(Rank peer, ReceivedFrame received) {
  const auto offer = payload_of<RegionOffer>(received.frame);
  if (!offer || !received.file) return invalid_usage("rank " + std::to_string(peer) + " sent a broken region");
  Segment memory = TUTTI_TRY(Segment::adopt(std::move(received.file), offer->bytes));
  memory.close_descriptor();
  regions_.insert_or_assign({peer, offer->id}, std::move(memory));
  return {};
}

std::byte* PeerRegions::locate(Rank peer, const BufferReference& reference, std::uint64_t bytes) const {
  const auto found = regions_.find({peer, reference.region});
  if (found == regions_.end()) return nullptr;
  const std::uint64_t size = found->second.size();
  if (reference.offset > size || bytes > size - reference.offset) return nullptr;
  return found->second.data() + reference.offset;
}

}  // namespace tutti
