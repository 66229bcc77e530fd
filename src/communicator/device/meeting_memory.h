// Device memory through which a rank's thread blocks meet those of its peers, for plans that access peers' memory.
#pragma once

#include "src/communicator/device/kernel_reports.h"
#include "src/communicator/peers/peer_set.h"
#include "src/executor/thread_block/call.h"

namespace tutti {

// Lives as long as the rank's device memory.
struct MeetingMemory {
  const MeetingPlace* place = nullptr;  // In device memory.
  WindowPart* windows = nullptr;        // Table of `place`. Zeroed, except window 0 if all ranks are on one device.
};

// Allocates one block of device memory for the meeting place, followed by the tables to which it points.
Result<MeetingMemory> make_meeting_memory(const PeerSet& peers, Rank self, const KernelReports& reports);

}  // namespace tutti
