// The invalid call that a rank shows to its peers, which wait for the call in vain.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tutti {

// Kind of an invalid call. A collective replaces a message in the record, since all peers wait for it.
enum class RejectedCall : std::uint32_t { message, collective };

// An invalid call, as read by other ranks.
struct Rejection {
  std::uint64_t collectives = 0;  // Number of collectives of the rank before the call.
  RejectedCall call = RejectedCall::collective;
  std::string text;  // The function, and why the call was rejected.
};

// Lies in shared memory. Any thread of one rank writes it and other ranks read it.
struct RejectionRecord {
  // 0: none; ~0: a thread writes the text; else 2 * (the number of collectives + 1) + the RejectedCall.
  std::uint64_t state = 0;
  std::uint64_t text[31] = {};
};
static_assert(sizeof(RejectionRecord) == 256);

// Shows a rejection, of which the text may be cut. The first rejected collective after a collective is kept, or else
// the first rejected message. Returns whether the record has changed.
bool show_rejection(RejectionRecord& own, const Rejection& rejection);

// Returns nullopt if there is none, or while a thread writes it.
std::optional<Rejection> read_rejection(const RejectionRecord& record);

}  // namespace tutti
