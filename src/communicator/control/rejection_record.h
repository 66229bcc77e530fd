// The invalid call that a rank shows to its peers, which wait for the call in vain.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tutti {

// An invalid call, as read by other ranks.
struct Rejection {
  std::uint64_t collectives = 0;  // Number of collectives of the rank before the call.
  std::string text;               // The function, and why the call was rejected.
};

// Lies in shared memory. Any thread of one rank writes it and other ranks read it.
struct RejectionRecord {
  std::uint64_t state = 0;  // 0: none; ~0: a thread writes the text; else the number of collectives, plus 1.
  std::uint64_t text[31] = {};
};
static_assert(sizeof(RejectionRecord) == 256);

// Shows a rejection, of which the text may be cut. The first one after a collective is kept. Returns whether the record
// has changed.
bool show_rejection(RejectionRecord& own, const Rejection& rejection);

// Returns nullopt if there is none, or while a thread writes it.
std::optional<Rejection> read_rejection(const RejectionRecord& record);

}  // namespace tutti
