// Order in which the calls of a group run on devices.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "src/communicator/device/enqueue.h"

namespace tutti {

// Returns true for a send or receive.
bool is_message(const Call& call);

// Groups of calls, per device: calls of different ranks that run side by side, several messages, or collectives of one
// rank that follow each other in a stream. A call by copy engines is a group by itself, which waits in its own stream
// only. In one stream, such calls of several communicators have the same order on all ranks.
class DeviceCallSchedule {
 public:
  struct Group {
    Device* device;
    bool messages;
    std::uint32_t nth;  // Position among its communicator's collectives, or among the messages of its two ranks.
    std::vector<const DeviceCall*> calls;
    bool in_order = false;  // The calls are collectives that follow each other.
  };

  // `calls` must outlive this object.
  explicit DeviceCallSchedule(std::span<const DeviceCall> calls);

  // Calls that wait for each other need a common launch or separate streams. Fails if a launch is too large.
  Status check() const;
  const std::vector<Group>& groups() const { return groups_; }

 private:
  void add(Group group);

  std::map<Device*, std::size_t> latest_;  // Index of its last group, plus one; 0: none.
  std::vector<Group> groups_;
};

}  // namespace tutti
