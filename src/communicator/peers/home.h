// Device memory of one rank for its peers: lanes that lead to it, and records of its buffers. Ranks of a process
// find each other's by a number.
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
inline constexpr std::size_t kRecordsBytes = 2 * kMaxChannels * sizeof(MeetingRecord);

// Any thread. Lives until the last of the ranks that use it lets go.
class DeviceHome {
 public:
  // Allocates nothing yet.
  explicit DeviceHome(const std::shared_ptr<Device>& device) : device_(device), arena_(device) {}
  ~DeviceHome();
  DeviceHome(const DeviceHome&) = delete;
  DeviceHome& operator=(const DeviceHome&) = delete;

  // Returns the number by which peers of this process find it until it ends; find() returns null after that.
  static std::uint64_t publish(const std::shared_ptr<DeviceHome>& home);
  static std::shared_ptr<DeviceHome> find(std::uint64_t number);

  Device& device() const { return *device_; }
  const std::shared_ptr<Device>& shared_device() const { return device_; }

  // A lane that lies here, made by the first of its ends that asks.
  Result<LanePair> lane(const LaneSpec& spec);
  // [channel * 2 + meeting % 2], kMaxChannels of them.
  Result<MeetingRecord*> records();
  // Memory for lanes from other processes, and what those open it by: a file, or else a handle. The records lie behind
  // the lanes.
  Status open_inboxes(std::size_t bytes, DeviceHandle& handle, File& file);
  std::byte* inboxes() const { return inboxes_; }
  // Others of a communicator that has failed may still write there, whenever their calls come to begin.
  void set_inboxes_aside();
  // No peer has them open, or will open them.
  void close_inboxes();
  // Reserves memory for the rank itself.
  Status reserve(std::size_t bytes);
  Result<std::byte*> take(std::size_t bytes);
  Result<std::byte*> take_any(std::size_t bytes);
  void retire(std::byte* memory, std::size_t bytes, std::uint64_t number);
  void done_before(std::uint64_t number);
  std::size_t bytes() const;

 private:
  const std::shared_ptr<Device> device_;
  mutable std::mutex mutex_;
  DeviceArena arena_;
  std::map<LaneSpec, LanePair> lanes_;
  MeetingRecord* records_ = nullptr;
  std::byte* inboxes_ = nullptr;
  std::size_t inboxes_bytes_ = 0;
};

}  // namespace tutti
