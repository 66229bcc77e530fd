// Entry of C functions that start a call. The fast path checks arguments in a few nanoseconds and runs the call;
// enter_slowly() does the rest.
#pragma once

#include <array>
#include <utility>

#include "src/api/comm_handle.h"
#include "src/api/errors.h"

namespace tutti {

// Arguments of a C function. Passed by value, so that the fast path keeps them in registers.
struct CallEntry {
  const char* function;
  Kind kind = Kind::collective;
  Collective collective = Collective::all_reduce;
  const void* send = nullptr;
  void* recv = nullptr;
  std::size_t count = 0;
  int type = 0;
  tutti_reduction reduction = tutti_sum;
  int root = 0;  // For send and recv: the peer.
  tutti_comm comm = nullptr;
  tutti_stream stream = nullptr;
};

// Maximum elements of a block. Products of count, size and ranks stay below 2^64.
inline constexpr std::uint64_t kMaxElements = 1ULL << 40;

// Depth of the calling thread's group. The TLS model is not initial-exec: the thread-local data of the library and of
// CUDA's runtime exceed the static TLS block of a running program, so that dlopen would fail.
extern thread_local constinit int group_depth;
inline bool in_group() { return group_depth > 0; }

// Value of group_depth while a callback runs. Calls then take the slow path, which refuses those that wait.
inline constexpr int kInCallback = -1;
inline bool in_callback() { return group_depth == kInCallback; }

// Exists while the thread runs a callback of a stream or request, which may be within a group.
class CallbackScope {
 public:
  CallbackScope() = default;
  ~CallbackScope() { group_depth = outer_depth_; }
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;

 private:
  const int outer_depth_ = std::exchange(group_depth, kInCallback);
};

// Returns an error in a callback, where `action` could wait for work behind the callback.
Status check_outside_callback(const char* action);
// Returns an error within a group: its pending calls may use the communicator. `action` begins the message. Also
// fails in callbacks, since these functions wait for peers; `waits` says in the message what does.
Status check_outside_group(const char* action, const char* waits = "creating, splitting or shrinking a communicator");

// Returns `answer` for a call that a group defers until its end. If a call is refused within a group, the thread's
// group runs no call, and its end returns the reason. `comm`: the communicator of the call.
tutti_status held_by_group(tutti_status answer, tutti_comm comm);

// Reports to the peers that this rank lacks memory for a call of `handle`, since they would wait for it. Throws
// nothing.
void abort_pending(const CommHandle& handle, const Status& reason);

// Shows a call that was rejected to the peers, which may wait for it. Returns `answer`, of which this thread's last
// error has the reason. Throws nothing.
[[gnu::cold]] tutti_status shown_to_peers(tutti_status answer, CallEntry entry);

// Handles invalid arguments, created reductions, groups, streams, and calls that must wait for earlier work in streams.
// `unequal`: arguments of all_to_all_v, copied if the call is deferred.
[[gnu::noinline]] tutti_status enter_slowly(CallEntry entry, const Unequal* unequal = nullptr);

// Returns an error unless the time limit of a function that waits is valid: 0 or more, or -1.
Status check_timeout(std::int64_t timeout_ms);

// Return an error unless the type is known, and unless it supports the reduction.
[[gnu::cold]] Status check_type(int type);
Status check_supported(DataType type, Reduction reduction);

// Returns the error of a call that plausible() rejects.
[[gnu::cold]] Status explain(const CallEntry& entry, const CommHandle& handle);

inline bool sends(const CallEntry& entry, int rank) {
  if (entry.kind != Kind::collective) return entry.kind == Kind::send;
  const bool from_root = entry.collective == Collective::broadcast || entry.collective == Collective::scatter;
  return !from_root || entry.root == rank;
}

inline bool receives(const CallEntry& entry, int rank) {
  if (entry.kind != Kind::collective) return entry.kind == Kind::recv;
  const bool to_root = entry.collective == Collective::reduce || entry.collective == Collective::gather;
  return !to_root || entry.root == rank;
}

// Returns whether the call is a message to self. Outside a group, send or recv would wait for the other. all_to_all_v
// needs no group.
inline bool is_to_self(const CallEntry& entry, const CommHandle& handle) {
  return (entry.kind == Kind::send || entry.kind == Kind::recv) && entry.root == static_cast<int>(handle.rank);
}

// Checks the arguments. all_to_all_v is checked earlier: its count is 0 here.
inline bool plausible(const CallEntry& entry, const CommHandle& handle) {
  const int rank = static_cast<int>(handle.rank);
  const bool has_buffers =
      (entry.send != nullptr || !sends(entry, rank)) && (entry.recv != nullptr || !receives(entry, rank));
  return static_cast<std::uint32_t>(entry.type) < kDataTypes && static_cast<Rank>(entry.root) < handle.ranks &&
         entry.count <= kMaxElements && (has_buffers || entry.count == 0);
}

// True if the reduction needs neither a search nor an error message.
inline bool is_simple(const CallEntry& entry) {
  static constexpr auto kSupported = [] {
    std::array<std::uint16_t, kDataTypes> bits = {};
    for (std::uint32_t i = 0; i < kDataTypes * kReductions; ++i) {
      const std::uint32_t type = i / kReductions, reduction = i % kReductions;
      if (supports(static_cast<DataType>(type), static_cast<Reduction>(reduction))) bits[type] |= 1U << reduction;
    }
    return bits;
  }();
  return static_cast<std::uint32_t>(entry.reduction) <= tutti_bxor &&
         (kSupported[static_cast<std::uint32_t>(entry.type)] >> entry.reduction & 1) != 0;
}

inline Call call_of(const CallEntry& entry) {
  Call call;
  call.kind = entry.kind;
  call.collective = entry.collective;
  call.type = static_cast<DataType>(entry.type);
  call.reduction = static_cast<Reduction>(entry.reduction);
  call.root = static_cast<Rank>(entry.root);
  call.count = entry.count;
  call.input = static_cast<const std::byte*>(entry.send);
  call.output = static_cast<std::byte*>(entry.recv);
  return call;
}

[[gnu::always_inline]] inline tutti_status enter(CallEntry entry) {
  const CommHandle* handle = CommHandles::instance().find(entry.comm);
  if (handle != nullptr && plausible(entry, *handle)) [[likely]] {
    Communicator* runner = handle->runner.load(std::memory_order_acquire);
    const bool is_plain = is_simple(entry) && group_depth == 0 && entry.stream == nullptr &&
                          !is_to_self(entry, *handle) && runner != nullptr &&
                          handle->shared->queued.load(std::memory_order_acquire) == 0 && !handle->shared->has_residuals;
    if (is_plain) [[likely]] {
      Status status = caught([&] { return runner->run(call_of(entry), handle->options); });
      if (status.ok()) [[likely]]
        return tutti_ok;
      return shown_to_peers(report(entry.function, note_failure(*handle->shared, std::move(status))), entry);
    }
  }
  return enter_slowly(entry);
}

}  // namespace tutti
