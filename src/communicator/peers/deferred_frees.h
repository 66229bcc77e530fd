// Deferred frees of lane memory that other processes may still have open. Freeing it before they close it is undefined
// behavior.
#pragma once

#include <memory>

#include "src/communicator/control/board.h"
#include "src/communicator/peers/rank_device_memory.h"

namespace tutti {

// Keeps `memory` until the board shows that all ranks of this host have left, or that the communicator has failed.
// Thread-safe.
void keep_until_all_have_left(std::shared_ptr<RankDeviceMemory> memory, const Board& board);

// Frees memory that no process has open any more. Called when communicators are created or end, and when a device lacks
// memory. Thread-safe.
void sweep_deferred_frees();

}  // namespace tutti
