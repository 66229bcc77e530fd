// Multicast objects of the ranks of a host or NVLink domain, to which they bind memory of their devices.
#pragma once

#include <memory>
#include <vector>

#include "src/communicator/communicator.h"
#include "src/executor/thread_block/device.h"

namespace tutti {

// A rank that this thread drives, and its memory: in an allocation of Device::allocate_shared(), or, if hosts are
// joined in NVLink domains, of Device::allocate_for_domain(); null if there is none, which fails.
struct MulticastMember {
  Communicator* control = nullptr;
  Device* device = nullptr;
  std::byte* memory = nullptr;
  const Hosts* hosts = nullptr;  // See PeerSet::hosts().
};

struct BoundMulticast {
  std::unique_ptr<DeviceMulticast> object;  // Null: the ranks use plain mapped memory.
  std::byte* address = nullptr;             // Multicast address of the rank's memory.
};

// Collective: binds the memory of all ranks of a host to one object, at the same offsets. If one rank fails, no rank of
// any host has an object, and rank 0 logs one sentence, which begins with `subject`. Fails if the ranks cannot
// communicate.
Result<std::vector<BoundMulticast>> bind_to_multicast(const std::vector<MulticastMember>& members, const char* subject);

// Destroys an object once no call of the process is in flight, since the driver may wait for kernels.
void destroy_when_idle(std::unique_ptr<DeviceMulticast> object);

}  // namespace tutti
