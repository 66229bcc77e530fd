// tutti_comm_shrink(): a new communicator without some ranks.
#include <algorithm>
#include <string>
#include <vector>

#include "src/api/call_entry.h"
#include "src/api/joining.h"
#include "src/api/ticket.h"
#include "src/communicator/device/device_backend.h"

namespace tutti {
namespace {

// Returns the excluded ranks in ascending order, or an error for an invalid list. Involves no peers.
Result<std::vector<Rank>> excluded_ranks(const CommHandle& handle, const int* given, int count) {
  if (count < 0) return invalid_argument("count is " + std::to_string(count) + ": pass how many ranks to leave out");
  if (given == nullptr && count > 0)
    return invalid_argument("excluded is null but count is " + std::to_string(count) + ": pass the ranks to leave out");
  std::vector<bool> seen(handle.ranks);
  for (int i = 0; i < count; ++i) {
    const std::string which = "excluded[" + std::to_string(i) + "] is " + std::to_string(given[i]);
    const auto rank = static_cast<Rank>(given[i]);
    if (rank >= handle.ranks)
      return invalid_argument(which + ", which is out of range; ranks are 0.." + std::to_string(handle.ranks - 1));
    if (seen[rank]) return invalid_argument(which + ", as one before it: pass each rank once");
    seen[rank] = true;
  }
  if (static_cast<Rank>(count) == handle.ranks)
    return invalid_argument("excluded has all " + std::to_string(count) +
                            " ranks: name those to leave out, not those that stay");
  if (seen[handle.rank])
    return invalid_argument("excluded has rank " + std::to_string(handle.rank) +
                            ", which is this one: only ranks that stay call this");
  std::vector<Rank> excluded;
  for (Rank rank = 0; rank < handle.ranks; ++rank) {
    if (seen[rank]) excluded.push_back(rank);
  }
  return excluded;
}

RankAndSize rank_and_size_without(const CommHandle& handle, const std::vector<Rank>& excluded) {
  const auto before = std::lower_bound(excluded.begin(), excluded.end(), handle.rank) - excluded.begin();
  return {handle.rank - static_cast<Rank>(before), handle.ranks - static_cast<Rank>(excluded.size())};
}

Status shrink(const CommHandle& handle, const std::vector<Rank>& excluded, const tutti_comm_options* given,
              tutti_comm* new_comm) {
  Communicator* runner = handle.runner;
  if (runner == nullptr) return no_runner(handle);
  CommunicatorOptions options = TUTTI_TRY(options_over(options_of(handle), given));
  TUTTI_CHECK_OK(check_same_memory(handle, options));
  // Ignores the failure of the calls: the new communicator serves to continue after a failure.
  if (handle.shared->on_device != nullptr) (void)handle.shared->on_device->await_own_calls();
  const Ticket ticket(handle.shared);
  ticket.await();
  const auto make = [&](const std::uint32_t* abort) {
    options.abort = abort;
    return runner->shrink(excluded, options);
  };
  return join(rank_and_size_without(handle, excluded), make, new_comm);
}

}  // namespace
}  // namespace tutti

extern "C" {

tutti_status tutti_comm_shrink(tutti_comm comm, const int* excluded, int count, const tutti_comm_options* options,
                               tutti_comm* new_comm) {
  return tutti::guarded("tutti_comm_shrink", [&]() -> tutti::Status {
    const tutti::CommHandle* handle = TUTTI_TRY(tutti::handle_of(comm));
    if (new_comm == nullptr) return tutti::invalid_argument("new_comm is null: pass a pointer to a tutti_comm");
    const std::vector<tutti::Rank> list = TUTTI_TRY(tutti::excluded_ranks(*handle, excluded, count));
    TUTTI_CHECK_OK(tutti::check_outside_group("communicators cannot be shrunk"));
    return tutti::shrink(*handle, list, options, new_comm);
  });
}

}  // extern "C"
