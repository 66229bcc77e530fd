// Signature and description of the messages of send, recv and all_to_all_v. A signature describes the contents of a
// message, so that a receiver whose call differs can report both calls.
#pragma once

#include <cstdint>
#include <string>

#include "src/base/types.h"
#include "src/communicator/call/call.h"

namespace tutti {

// Returns the signature of the message that a send or recv transfers.
std::uint32_t message_signature(const Call& call);
// Returns the signature of an all_to_all_v, which is equal on all ranks if the calls match, although counts differ.
std::uint32_t unequal_signature(DataType type);

// Returns the maximum number of elements of a slice. Two slices fit a slot.
std::uint64_t slice_elements(std::uint32_t slot_bytes, std::uint64_t element_bytes);
// Returns the number of slots that a message fills, given only its signature. A message that the receiver has not begun
// to read fits the slots of its lane, so its signature contains the count.
std::uint64_t slices_of(std::uint32_t signature, std::uint32_t slot_bytes);

std::string describe_message(const Call& call);                     // Example: "recv(20 int32, from rank 0)".
std::string describe_send(std::uint32_t signature, Rank receiver);  // Example: "send(20 int32, to rank 0)".
std::string describe_elements(std::uint64_t count, DataType type);  // Example: "20 int32".
std::string describe_elements(std::uint32_t signature);             // Like describe_elements() above, for a signature.

}  // namespace tutti
