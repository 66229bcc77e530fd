// Memory for lanes that a rank leaves behind while others, of other processes, still have it open: to free it under
// them is undefined.
#pragma once

#include <memory>

#include "src/communicator/control/board.h"
#include "src/communicator/peers/home.h"

namespace tutti {

// Keeps the home until all ranks of this host have left, as the board says, or the communicator has failed. Any thread.
void keep_until_all_have_left(std::shared_ptr<DeviceHome> home, const Board& board);

// Lets go of what nobody has open any more: called where communicators are made and end, and where a device lacks
// memory. Any thread.
void sweep_deferred_frees();

}  // namespace tutti
