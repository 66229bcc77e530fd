#include "src/api/unequal.h"

#include <algorithm>

namespace tutti {
namespace {

struct Side {
  const char* counts_name;
  const char* displacements_name;
  const size_t* counts;
  const size_t* displacements;
  bool has_buffer;
};

Status check(const Side& side, Rank ranks) {
  if (side.counts == nullptr || side.displacements == nullptr) {
    return invalid_argument(std::string(side.counts == nullptr ? side.counts_name : side.displacements_name) +
                            " is null: pass an array of " + std::to_string(ranks) + " entries");
  }
  for (Rank rank = 0; rank < ranks; ++rank) {
    const std::string entry = "[" + std::to_string(rank) + "] is ";
    if (side.counts[rank] > kMaxElements) {
      return invalid_argument(side.counts_name + entry + std::to_string(side.counts[rank]) +
                              ": more than any memory holds");
    }
    if (side.displacements[rank] > kMaxElements) {
      return invalid_argument(side.displacements_name + entry + std::to_string(side.displacements[rank]) +
                              ": more than any memory holds");
    }
    if (side.counts[rank] > 0 && !side.has_buffer) {
      return invalid_argument("the buffer of " + std::string(side.counts_name) + " is null, but " + side.counts_name +
                              entry + std::to_string(side.counts[rank]));
    }
  }
  return {};
}

Status copy(const UnequalArrays& arrays, Rank ranks, Unequal& unequal) {
  unequal.send_counts.assign(arrays.send_counts, arrays.send_counts + ranks);
  unequal.send_displacements.assign(arrays.send_displacements, arrays.send_displacements + ranks);
  unequal.recv_counts.assign(arrays.recv_counts, arrays.recv_counts + ranks);
  unequal.recv_displacements.assign(arrays.recv_displacements, arrays.recv_displacements + ranks);
  return {};
}

}  // namespace

tutti_status enter_unequal(CallEntry entry, const UnequalArrays& arrays) {
  Unequal unequal;
  const tutti_status status = guarded(entry.function, [&]() -> Status {
    const CommHandle* handle = TUTTI_TRY(handle_of(entry.comm));
    const Rank ranks = handle->ranks;
    TUTTI_CHECK_OK(check(
        {"send_counts", "send_displacements", arrays.send_counts, arrays.send_displacements, entry.send != nullptr},
        ranks));
    TUTTI_CHECK_OK(check(
        {"recv_counts", "recv_displacements", arrays.recv_counts, arrays.recv_displacements, entry.recv != nullptr},
        ranks));
    Status copied = caught([&] { return copy(arrays, ranks, unequal); });
    if (!copied.ok() && handle->runner != nullptr) abort_pending(*handle, copied);
    return copied;
  });
  if (status != tutti_ok) return held_by_group(shown_to_peers(status, entry), entry.comm);
  return enter_slowly(entry, &unequal);
}

}  // namespace tutti
