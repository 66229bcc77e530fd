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
  Outcome check() const;

  // Stores the values of all ranks, by rank, in `all` of rank 0. On other ranks `all` stays empty.
  template <typename Value>
  Outcome gather(const Value& own, std::vector<Value>& all) const {
    static_assert(std::is_trivially_copyable_v<Value>);
    if (rank_ != 0) return send(&own, sizeof own);
    all.assign(static_cast<std::size_t>(ranks_), own);
    return receive_from_all(all.data(), sizeof own);
  }
  // Replaces `value` by that of rank 0.
  template <typename Value>
  Outcome broadcast(Value& value) const {
    static_assert(std::is_trivially_copyable_v<Value>);
    return rank_ == 0 ? send_to_all(&value, sizeof value) : receive(&value, sizeof value);
  }
  // Fails on all ranks if `own` has failed on one.
  Outcome agree(const Outcome& own) const;

 private:
  Outcome wait(tutti_request request, int peer) const;
  Outcome send(const void* value, std::size_t bytes) const;
  Outcome receive(void* value, std::size_t bytes) const;
  Outcome send_to_all(const void* value, std::size_t bytes) const;
  Outcome receive_from_all(void* values, std::size_t bytes) const;

  tutti_comm comm_;
  int rank_, ranks_;
  std::int64_t limit_ms_;
};

}  // namespace tutti::nccl
