// How slots of a lane return to its writer. Plans prove which form is safe; transports lay out memory for it.
#pragma once

#include <cstdint>

namespace tutti {

//   one_way     The reader returns credits.
//   round_trip  The reader folds in the slot and returns it as a message of the partner lane, which serves as credit.
//   swap        Two sets of slots change owners on each lap. The next message goes where the partner's last message was
//               read. Having read that message serves as credit.
// round_trip and swap exist because on coherent memory a write is cheapest for the rank that touched the cache line
// last.
enum class LaneForm : std::uint8_t { one_way, round_trip, swap };

}  // namespace tutti
