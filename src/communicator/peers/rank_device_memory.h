// Device memory of one rank that peers use: lanes that the rank reads, and its address records. Peers in the same
// process find it by number.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "src/communicator/peers/arena.h"
#include "src/executor/thread_block/call.h"
#include "transports/transport.h"

namespace tutti {

inline constexpr std::uint32_t kMaxChannels = 64;
inline constexpr std::size_t kRecordsBytes = 2 * kMaxChannels * sizeof(AddressRecord);

// Thread-safe. Shared by the ranks that use it.
class RankDeviceMemory {
 public:
  // Does not allocate memory.
  explicit RankDeviceMemory(const std::shared_ptr<Device>& device) : device_(device), arena_(device) {}
  ~RankDeviceMemory();
  RankDeviceMemory(const RankDeviceMemory&) = delete;
  RankDeviceMemory& operator=(const RankDeviceMemory&) = delete;

  // Returns the number by which peers of this process find it until it ends; find() returns null after that.
  static std::uint64_t publish(const std::shared_ptr<RankDeviceMemory>& memory);
  static std::shared_ptr<RankDeviceMemory> find(std::uint64_t number);

  Device& device() const { return *device_; }
  const std::shared_ptr<Device>& shared_device() const { return device_; }

  // Returns a lane in this memory. The first end that asks for it creates it.
  Result<LanePair> lane(const LaneSpec& spec);
  // Returns an array of kMaxChannels records per parity of the exchange: [channel * 2 + sequence % 2].
  Result<AddressRecord*> records();
  // Allocates lanes for writers in other processes, followed by the records. Returns how to open them: by `file`, or by
  // `handle` if `file` is empty.
  Status allocate_exported_lanes(std::size_t bytes, DeviceHandle& handle, File& file);
  std::byte* exported_lanes() const { return exported_; }
  // Keeps the exported lanes allocated after a failure: calls of peers that begin later may still write to them.
  void retain_exported_lanes();
  // Frees the exported lanes. No peer may have them open, or open them later.
  void free_exported_lanes();
  // These functions forward to the arena of the rank.
  Status reserve(std::size_t bytes);
  Result<std::byte*> allocate(std::size_t bytes);
  Result<std::byte*> allocate_uncleared(std::size_t bytes);
  void retire(std::byte* memory, std::size_t bytes, std::uint64_t number);
  void done_before(std::uint64_t number);
  std::size_t bytes() const;

 private:
  const std::shared_ptr<Device> device_;
  mutable std::mutex mutex_;
  DeviceArena arena_;
  std::map<LaneSpec, LanePair> lanes_;
  AddressRecord* records_ = nullptr;
  std::byte* exported_ = nullptr;
  std::size_t exported_bytes_ = 0;
};

}  // namespace tutti
