// The way of a call from its C function to the communicator: checks that cost a few nanoseconds, then straight on. The
// words for what is wrong, groups and streams are out of line.
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

// What is wrong with a call that plausible() rejects.
[[gnu::cold]] Status explain(const CallEntry& entry, const Door& door, const Call& call);
// A call with a made reduction, in a group, in a stream, or behind work that is in streams.
[[gnu::noinline]] Status enter_slowly(const CallEntry& entry, const Door& door, Call call);

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

// `call` lacks what `entry` holds in C's form.
[[gnu::always_inline]] inline tutti_status enter(const CallEntry& entry, Call call) {
  Door* door = Doors::instance().find(entry.comm);
  if (__builtin_expect(door == nullptr, 0)) return report(entry.function, no_communicator(entry.comm));
  call.type = static_cast<DataType>(entry.type);
  call.reduction = static_cast<Reduction>(entry.reduction);
  call.root = static_cast<Rank>(entry.root);
  call.unequal = entry.unequal;
  return guarded(entry.function, [&]() -> Status {
    Communicator* runner = door->runner.load(std::memory_order_acquire);
    if (__builtin_expect(runner == nullptr, 0)) return no_runner(*door);
    if (__builtin_expect(!plausible(entry, *door, call), 0)) return explain(entry, *door, call);
    const bool is_plain = static_cast<std::uint32_t>(entry.reduction) <= tutti_avg && group_depth == 0 &&
                          entry.stream == nullptr && entry.unequal == nullptr &&
                          door->membership->queued.load(std::memory_order_acquire) == 0;
    if (__builtin_expect(!is_plain, 0)) return enter_slowly(entry, *door, call);
    return runner->run(call, door->options);
  });
}

}  // namespace tutti
