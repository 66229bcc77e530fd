// Device memory of one rank: what peers use (lanes that the rank reads, its address records and its staging ring), and
// what only its own device accesses. Peers in the same process find the memory by number.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "src/communicator/peers/suballocator.h"
#include "src/executor/thread_block/call.h"
#include "src/executor/thread_block/device.h"
#include "transports/transport.h"

namespace tutti {

inline constexpr std::uint32_t kMaxChannels = 64;
inline constexpr std::size_t kRecordsBytes = 2 * kMaxChannels * sizeof(AddressRecord);

// Thread-safe. Shared by the ranks that use it. Memory is freed with the last of them, when no thread block uses it.
class RankDeviceMemory {
 public:
  // Does not allocate memory.
  explicit RankDeviceMemory(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~RankDeviceMemory();
  RankDeviceMemory(const RankDeviceMemory&) = delete;
  RankDeviceMemory& operator=(const RankDeviceMemory&) = delete;

  // Returns the number by which peers of this process find it until it ends; find() returns null after that.
  static std::uint64_t publish(const std::shared_ptr<RankDeviceMemory>& memory);
  static std::shared_ptr<RankDeviceMemory> find(std::uint64_t number);

  // Returns true if set_large_lanes() was called for a memory on the device in this process that still exists.
  static bool has_large_lanes(const DeviceIdentity& device);
  void set_large_lanes();

  Device& device() const { return *device_; }
  const std::shared_ptr<Device>& shared_device() const { return device_; }

  // Returns a lane in this memory. The first end that asks for it creates it.
  Result<LanePair> lane(const LaneSpec& spec);
  // Returns an array of kMaxChannels records per parity of the exchange: [channel * 2 + sequence % 2].
  Result<AddressRecord*> records();
  // Returns the staging ring, of the same size at each call.
  Result<std::byte*> ring(std::size_t bytes);
  // Allocates lanes for writers in other processes, followed by the records and the staging ring. Returns how to open
  // them; see Device::share_of().
  Result<DeviceShare> allocate_exported_lanes(std::size_t bytes, File& file, std::size_t ring_bytes = 0);
  // Like allocate_exported_lanes(), also for writers on other hosts of the NVLink domain. Never by a file.
  Result<DeviceShare> allocate_lanes_for_domain(std::size_t bytes, std::size_t ring_bytes);
  std::byte* exported_lanes() const { return exported_; }
  // Keeps a multicast object to which the exported lanes are bound, as long as these. Returns the multicast address of
  // the staging ring.
  std::byte* keep_multicast(std::unique_ptr<DeviceMulticast> object, std::byte* address);
  // Keeps the multicast objects of windows after a failure, as long as the exported lanes: calls of peers may still
  // store at their addresses.
  void keep_multicast_of_windows(std::vector<std::unique_ptr<DeviceMulticast>> objects);
  // Keeps the exported lanes allocated after a failure: calls of peers that begin later may still write to them.
  void retain_exported_lanes();
  // Frees the exported lanes. No peer may access them any more, or open them later.
  void free_exported_lanes();

  std::size_t bytes() const;  // Bytes allocated from the device.
  // Bytes of device memory that calls need later: lane(), ring() unless it exists, and allocate().
  struct Reserve {
    std::size_t lanes, ring, own;
  };
  // Allocates the memory, and that of records().
  Status reserve(const Reserve& wanted);
  // Returns zeroed memory, aligned to 256 bytes, that no other device accesses. Does not wait for kernels of other
  // devices, where the device supports that.
  Result<std::byte*> allocate(std::size_t bytes);
  // Like allocate(), but may return retired memory, with its old content.
  Result<std::byte*> allocate_uncleared(std::size_t bytes);
  // Makes memory available to allocate_uncleared() once call `number` is known to be done; see done_before().
  void retire(std::byte* memory, std::size_t bytes, std::uint64_t number);
  // Reports that all calls before `number` are done.
  void done_before(std::uint64_t number);

 private:
  struct Retired {
    std::byte* memory;
    std::uint64_t number;
  };
  Result<DeviceShare> export_lanes(std::byte* memory, std::size_t bytes, std::size_t ring_bytes, File& file);
  static constexpr std::size_t kClasses = 14;  // Size classes of retired memory: 256 bytes to 2 MiB.

  const std::shared_ptr<Device> device_;
  mutable std::mutex mutex_;
  Suballocator for_peers_{*device_, &Device::allocate};
  Suballocator own_{*device_, &Device::allocate_private};
  std::uint64_t done_before_ = 0;
  std::array<std::vector<Retired>, kClasses> retired_;
  std::map<std::size_t, std::vector<Retired>> large_;  // By size.
  std::map<LaneSpec, LanePair> lanes_;
  AddressRecord* records_ = nullptr;
  std::byte* ring_ = nullptr;
  std::byte* exported_ = nullptr;
  std::size_t exported_bytes_ = 0;
  std::vector<std::unique_ptr<DeviceMulticast>> multicast_;
};

}  // namespace tutti
