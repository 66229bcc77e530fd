// Device memory in which thread blocks of different ranks exchange addresses, for plans that access peers' memory.
#pragma once

#include "src/communicator/device/kernel_reports.h"
#include "src/communicator/peers/peer_set.h"
#include "src/executor/thread_block/call.h"

namespace tutti {

// Lives as long as the rank's device memory.
struct AddressExchangeMemory {
  const AddressExchange* exchange = nullptr;  // In device memory.
  WindowPart* windows = nullptr;  // Table of `exchange`. Zeroed, except window 0 if all ranks are on one device.
};

// Allocates one block of device memory for the address exchange, followed by the tables to which it points.
Result<AddressExchangeMemory> make_address_exchange(const PeerSet& peers, Rank self, const KernelReports& reports);

}  // namespace tutti
