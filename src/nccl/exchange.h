// Small exchanges between the ranks of a communicator while it is changed, by messages with tags. They need no memory
// of the program, and no stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "src/nccl/errors.h"
#include "tutti/tutti.h"

namespace tutti::nccl {

// Collective. Each function waits for the ranks it needs, until the communicator fails or is aborted, or for at most
// `limit_ms`; -1: no limit. After a timeout the ranks are out of step, so it aborts the communicator.
class Exchange {
 public:
  struct Member {
    int rank, ranks;
  };
  Exchange(tutti_comm comm, Member self, std::int64_t limit_ms)
      : comm_(comm), rank_(self.rank), ranks_(self.ranks), limit_ms_(limit_ms) {}

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  std::int64_t limit_ms() const { return limit_ms_; }
  // Fails if the communicator has failed or was aborted.
  Outcome check() const { return failure_of(comm_); }

  // Stores the values of all ranks, by rank, in `all` of rank 0. On other ranks `all` stays empty.
  template <typename Value>
  Outcome gather(const Value& own, std::vector<Value>& all) const {
    static_assert(std::is_trivially_copyable_v<Value>);
    Value sent = own;
    if (rank_ != 0) return transfer(Direction::send, &sent, sizeof own, 0);
    all.assign(static_cast<std::size_t>(ranks_), own);
    return transfer(Direction::receive, all.data(), sizeof own, sizeof own);
  }
  // Replaces `value` by that of rank 0.
  template <typename Value>
  Outcome broadcast(Value& value) const {
    static_assert(std::is_trivially_copyable_v<Value>);
    return transfer(rank_ == 0 ? Direction::send : Direction::receive, &value, sizeof value, 0);
  }
  // Fails on all ranks if `own` has failed on one.
  Outcome agree(const Outcome& own) const;

 private:
  enum class Direction { send, receive };
  Outcome wait(tutti_request request, int peer) const;
  // Transfers one message between rank 0 and each other rank. Its value lies at `values` plus the number of the peer
  // times `distance` bytes.
  Outcome transfer(Direction direction, void* values, std::size_t bytes, std::size_t distance) const;

  tutti_comm comm_;
  int rank_, ranks_;
  std::int64_t limit_ms_;
};

}  // namespace tutti::nccl
