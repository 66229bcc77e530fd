// How the slots of a lane go back to its writer. Plans prove which form is safe, transports lay out memory for it.
#pragma once

#include <cstdint>

namespace tutti {

//   one_way     the reader returns credits.
//   round_trip  the reader folds in the slot and returns it as a message of the partner lane: the answer is the credit.
//   swap        two sets of slots change hands each lap: the next message is written where the partner's last one was
//               read: having read is the credit.
// The last two exist because on coherent memory the rank that touched a line last writes it next at the least cost.
enum class LaneForm : std::uint8_t { one_way, round_trip, swap };

}  // namespace tutti
