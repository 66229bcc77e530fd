// A step folds some operands and writes the result to other operands. Send, receive, copy, reduce, signal and await are
// special cases; there are no opcodes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "src/base/platform.h"
#include "src/plan/problem.h"

namespace tutti {

enum class Space : std::uint8_t {
  input,    // The caller's input, in units of all its blocks: unit u of block b is b * units + u.
  output,   // The caller's output, in units of all its blocks.
  scratch,  // The plan's own memory; unit s is as long as unit s % units of a block.
  lane,     // A FIFO to or from a peer: a source receives the next message, a target sends one.
  flag,  // A counter with one writer and one reader, without data: a source awaits the next signal, a target signals.
};

// Peers of memory operands of all ranks, and of all ranks of the host of the rank that executes the step (groups[0] of
// the problem); see all(). The ranks of a host are reached by the same switches.
inline constexpr Rank kAllRanks = ~Rank{0}, kAllOfHost = kAllRanks - 1;

// A range of units that starts at `first`: runs of `run` units, `stride` units apart, `count` units in all. Contiguous
// ranges have run == count and stride == count.
struct Operand {
  Space space = Space::input;
  std::uint8_t reserved = 0;
  std::uint16_t tag = 0;  // Selects a lane or flag of the pair; 0 unless composed.
  // Memory: its owner (self, a mapped peer, kAllRanks or kAllOfHost). Lane, flag: the other end (may be self).
  Rank peer = 0;
  std::uint32_t first = 0;  // Lane: only displayed. Flag: 0.
  std::uint32_t count = 0;  // Lane: units in the message, which both ends must agree on. Flag: 0.
  std::uint32_t run = 0;
  std::uint32_t stride = 0;

  bool operator==(const Operand&) const = default;
  TUTTI_HOST_DEVICE bool is_memory() const { return space <= Space::scratch; }
  // True for memory of all ranks, or of all ranks of a host.
  bool is_of_several() const { return is_memory() && peer >= kAllOfHost; }
  // Returns the i-th unit of the range, i < count.
  TUTTI_HOST_DEVICE std::uint32_t unit(std::uint32_t i) const {
    return run == 0 ? first : first + i / run * stride + i % run;
  }
};
static_assert(sizeof(Operand) == 24);

// Whether the result of a fold is a complete reduction, with the contribution of every rank. Averages divide such
// results. In compiled plans only, by switches: from_all is the complete sum of memory of all ranks, partial_from_all
// such a sum that is not complete, since the switches connect only the ranks of a host, to_all a copy to memory of all
// ranks, and among_all a complete sum that is stored to all.
enum class Fold : std::uint8_t { partial, complete, partial_from_all, from_all, to_all, among_all };
constexpr bool by_switches(Fold fold) { return fold >= Fold::partial_from_all; }

// With compression, a rank rounds its own stored copy exactly as peers receive it, so that all ranks end with the same
// bits. In an all-reduce this applies to every complete sum, in an all-gather and a broadcast to data read only from
// memory.
enum class RoundedStores : std::uint8_t { none, sums, copies };
constexpr RoundedStores rounded_stores_of(Collective collective) {
  switch (collective) {
    case Collective::all_reduce: return RoundedStores::sums;
    case Collective::all_gather:
    case Collective::broadcast: return RoundedStores::copies;
    default: return RoundedStores::none;
  }
}

// Folds the sources from left to right and writes the result to every target. All memory and lane operands of a step
// have the same number of units, of pairwise equal length. Source flags are awaited before any data is read. Target
// flags are signalled after all data is written.
struct Step {
  std::span<const Operand> sources;
  std::span<const Operand> targets;
  Fold fold = Fold::partial;
};

// Operands for authors of algorithms. Steps sets the peer of memory operands.
constexpr Operand units(Space space, std::uint32_t first, std::uint32_t count) {
  return {.space = space, .first = first, .count = count, .run = count, .stride = count};
}
constexpr Operand input(std::uint32_t first, std::uint32_t count = 1) { return units(Space::input, first, count); }
constexpr Operand output(std::uint32_t first, std::uint32_t count = 1) { return units(Space::output, first, count); }
constexpr Operand scratch(std::uint32_t first, std::uint32_t count = 1) { return units(Space::scratch, first, count); }
// A range of `count` units, in runs of `run` units, `stride` units apart.
constexpr Operand strided(Operand range, std::uint32_t run, std::uint32_t stride) {
  range.run = run;
  range.stride = stride;
  return range;
}
constexpr Operand lane(Rank peer, std::uint32_t count, std::uint16_t tag = 0) {
  return {.space = Space::lane, .tag = tag, .peer = peer, .count = count, .run = count, .stride = count};
}
constexpr Operand flag(Rank peer, std::uint16_t tag = 0) { return {.space = Space::flag, .tag = tag, .peer = peer}; }
// Memory of a mapped peer, which is read or written in place.
constexpr Operand at(Rank peer, Operand memory) {
  memory.peer = peer;
  memory.reserved = 1;  // Marks an explicit peer; Steps clears the mark.
  return memory;
}

// Memory of all ranks, self included: the same units of each. As a source, which is in inputs or scratch: the fold of
// the contributions of all ranks, once each, in an unspecified order. As a target, which is in outputs or scratch: a
// store to all. Switches do both where they can. A step with such an operand has one source and one target with data.
constexpr Operand all(Operand memory) { return at(kAllRanks, memory); }
constexpr Operand all_of_host(Operand memory) { return at(kAllOfHost, memory); }

// Ranks [first, end).
struct RankRange {
  Rank first = 0, end = 0;
};
// Ranks whose memory an operand of a rank's step is: one, all, or those of the rank's host.
RankRange owners_of(const Operand& operand, const Problem& problem, Rank self);

// The steps of one rank in one round, in the order of execution.
class Steps {
 public:
  explicit Steps(Rank self) : self_(self) {}

  // General form of a step; the functions below are shorthands. Memory operands belong to self unless made by at().
  void fold(std::initializer_list<Operand> sources, std::initializer_list<Operand> targets, Fold fold = Fold::partial) {
    add({sources.begin(), sources.size()}, {targets.begin(), targets.size()}, fold);
  }
  void add(std::span<const Operand> sources, std::span<const Operand> targets, Fold fold = Fold::partial);

  void send(Operand from, Rank to, std::uint16_t tag = 0) { fold({from}, {lane(to, from.count, tag)}); }
  void recv(Rank from, Operand to, std::uint16_t tag = 0) { fold({lane(from, to.count, tag)}, {to}); }
  void copy(Operand from, Operand to) { fold({from}, {to}); }
  // target = (message from `from`) folded with `own`; the message is the left operand.
  void reduce(Rank from, Operand own, Operand target, Fold kind = Fold::partial) {
    fold({lane(from, own.count), own}, {target}, kind);
  }
  void signal(Rank to, std::uint16_t tag = 0) { fold({}, {flag(to, tag)}); }
  void await(Rank from, std::uint16_t tag = 0) { fold({flag(from, tag)}, {}); }

  Rank self() const { return self_; }
  std::size_t size() const { return records_.size(); }
  Step operator[](std::size_t index) const;

 private:
  struct Record {
    std::uint32_t first;
    std::uint16_t sources, targets;
    Fold fold;
  };
  Rank self_;
  std::vector<Operand> operands_;
  std::vector<Record> records_;
};

}  // namespace tutti
