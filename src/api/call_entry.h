// The way of a call from its C function to the communicator: checks that cost a few nanoseconds, then straight on.
#pragma once

#include "src/api/door.h"
#include "src/api/errors.h"

namespace tutti {

// Where a call came in.
struct CallEntry {
  const char* function;
  tutti_comm comm;
  tutti_stream stream;
  int type = 0;
  tutti_reduction reduction = tutti_sum;
  int root = 0;  // Or the peer.
  const Unequal* unequal = nullptr;
};

inline constexpr std::uint64_t kMostElements = 1ULL
                                               << 40;  // Of a block: no machine holds more, and no product overflows.

// Depth of the calling thread's group. Initial-exec: one instruction instead of a call.
extern thread_local constinit int group_depth __attribute__((tls_model("initial-exec")));

// The thread's group then runs nothing, and its end says this.
void fail_group(tutti_status status, const std::string& message);

// All that is not simply run: what is wrong, a made reduction, a group, a stream, or work in streams before it.
[[gnu::noinline]] tutti_status enter_slowly(const CallEntry& entry, const Call& call);
// What is wrong with a call that plausible() rejects.
[[gnu::cold]] Status explain(const CallEntry& entry, const Door& door, const Call& call);

inline bool sends(const Call& call, Rank rank) {
  if (call.kind != Kind::collective) return call.kind == Kind::send;
  const bool from_root = call.collective == Collective::broadcast || call.collective == Collective::scatter;
  return !from_root || call.root == rank;
}

inline bool receives(const Call& call, Rank rank) {
  if (call.kind != Kind::collective) return call.kind == Kind::recv;
  const bool to_root = call.collective == Collective::reduce || call.collective == Collective::gather;
  return !to_root || call.root == rank;
}

inline bool plausible(const CallEntry& entry, const Door& door, const Call& call) {
  const bool has_buffers =
      (call.input != nullptr || !sends(call, door.rank)) && (call.output != nullptr || !receives(call, door.rank));
  return static_cast<std::uint32_t>(entry.type) < kDataTypes && call.root < door.ranks && call.count <= kMostElements &&
         (has_buffers || call.count == 0);
}

[[gnu::always_inline]] inline tutti_status enter(const CallEntry& entry, const Call& call) {
  const Door* door = Doors::instance().find(entry.comm);
  if (door != nullptr && plausible(entry, *door, call)) [[likely]] {
    Communicator* runner = door->runner.load(std::memory_order_acquire);
    const bool is_plain = static_cast<std::uint32_t>(entry.reduction) <= tutti_avg && group_depth == 0 &&
                          entry.stream == nullptr && call.unequal == nullptr && runner != nullptr &&
                          door->membership->queued.load(std::memory_order_acquire) == 0;
    if (is_plain) [[likely]]
      return leave(entry.function, caught([&] { return runner->run(call, door->options); }));
  }
  return enter_slowly(entry, call);
}

}  // namespace tutti
