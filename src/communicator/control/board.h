// Board: shared state of the ranks of one host, beside the data: the call of each rank, its CPUs, and the failure
// of the communicator. One shared segment; each entry has one writer. Entries for ranks of other hosts are in
// memory of this process, which fills them in from notifications.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/atomic.h"
#include "src/base/clock.h"
#include "src/base/status.h"
#include "src/base/types.h"
#include "src/communicator/control/switchover.h"
#include "src/communicator/control/wait_record.h"
#include "src/communicator/forced.h"
#include "src/plan/problem.h"
#include "transports/shm/segment.h"

namespace tutti {

// A buffer as other ranks can find it.
struct BufferReference {
  std::uint64_t region = 0;  // One that its owner has passed, or one of these.
  std::uint64_t offset = 0;  // Into the region, or an address.
};
static_assert(sizeof(BufferReference) == 16);
inline constexpr std::uint64_t kHiddenBuffer = 0;                 // Private to its process: nobody else reaches it.
inline constexpr std::uint64_t kNoBuffer = ~std::uint64_t{0};     // The rank has no such buffer in this collective.
inline constexpr std::uint64_t kOwnAddressSpace = kNoBuffer - 1;  // All ranks are threads of one process: its address.

// One call of one rank. Written before its number.
struct CallRecord {
  std::uint64_t sequence = 0;  // Collectives of the communicator so far, this one included.
  std::uint64_t count = 0;
  std::uint32_t signature = 0;  // Equal on all ranks, or the calls do not match.
  std::uint32_t root = 0;
  std::uint8_t collective = 0;
  std::uint8_t type = 0;
  std::uint8_t reduction = 0;
  std::uint8_t advised = 0;  // 1: a tuner plugin has had its say.
  Asked asked;               // For words: the signature has it, too.
  BufferReference input;
  BufferReference output;
};
static_assert(sizeof(CallRecord) == 64);

inline constexpr std::uint8_t kUnequalCollective = 255;  // In `collective`: all_to_all_v, which has a count per rank.
inline constexpr std::uint8_t kSplitCollective = 254;    // The all_gather with which the ranks agree on a split.
inline constexpr std::uint32_t kCallHistory = 16;

inline constexpr std::uint32_t kMaxCpus = 1024;
inline constexpr std::uint32_t kMaxRemoteAccesses =
    64;  // ThreadBlocks of a rank that are in its peers' memory at the same time.

struct alignas(128) BoardEntry {
  std::uint32_t cpu = ~0U;                 // Where the rank last was, so that who waits for it knows whether to yield.
  std::uint32_t left = 0;                  // 1: the rank has finalized.
  std::uint32_t region_notifications = 0;  // Messages about its regions that the rank has sent to its peers so far.
  std::uint32_t cpus_shown = 0;            // 1: `cpus` is there.
  std::uint64_t cpus[kMaxCpus / 64] = {};  // CPUs that the rank may run on; CPU c is bit c % kMaxCpus.
  std::uint64_t moves = 0;                 // Launches of the rank that got ahead, where its device is shared in turns.
  WaitRecord wait;                         // The last wait of the rank that it has shown.
  // Not 0: the rank may be reading and writing its peers' memory; see visit.h. On a line that nobody reads meanwhile.
  alignas(128) std::uint32_t remote_accesses = 0;
  alignas(128) std::uint32_t
      block_accesses[kMaxRemoteAccesses] = {};  // The same of its thread blocks on a device, by channel.
  alignas(128) CallRecord calls[kCallHistory];  // Call k at k % kCallHistory.
};
static_assert(sizeof(BoardEntry) == 640 + kCallHistory * sizeof(CallRecord));

// ---- Calls on devices that are on trial ----

inline constexpr std::uint32_t kMaxAutotuners =
    32;                                         // Classes of them; each has a place, in the order of their first calls.
inline constexpr std::size_t kMaxFigures = 56;  // That a rank tells of a stage of one.
inline constexpr std::size_t kMaxKept = 2 * 1024;  // PluginChoices that rank 0 tells the others.

// Figures of one rank for one tuning class.
struct alignas(128) AutotunerEntry {
  std::uint64_t shown = 0;     // Number of its latest call; see Switchover.
  std::uint32_t reported = 0;  // Number of the stage whose figures these are, written behind them.
  std::uint32_t reserved = 0;
  std::uint32_t seen_ns[kMaxFigures] = {};
};
static_assert(sizeof(AutotunerEntry) == 256);

struct alignas(128) AutotunerHeader {
  struct alignas(64) Place {
    std::uint64_t word = 0;  // Word of a Switchover.
  };
  Place places[kMaxAutotuners];
  std::uint32_t kept[kMaxKept] = {};
};
static_assert(sizeof(AutotunerHeader) == 64 * kMaxAutotuners + 4 * kMaxKept);

struct alignas(128) BoardHeader {
  std::uint32_t version = 0;
  std::uint32_t ranks = 0;
  std::uint32_t claimed = 0;  // The first failure wins and is kept.
  std::uint32_t failed = 0;   // 1: `code` and `message` are there.
  std::uint32_t code = 0;
  std::uint32_t rank = 0;                                 // Rank that found the failure.
  std::uint32_t reason = 0;                               // A FailureReason.
  alignas(8) std::int64_t remote_access_deadline_ns = 0;  // See Board::remote_access_deadline(); 0: nobody has asked.
  char message[984] = {};
};
static_assert(sizeof(BoardHeader) == 1024);

// Kind of failure for the ranks that did not find it: the same failure, or the finder runs none of a group's calls.
enum class FailureReason : std::uint32_t { shared, called_off };

class Board {
 public:
  static Result<Board> create(Rank ranks);
  static Result<Board> adopt(File file, Rank ranks);
  static std::size_t bytes(Rank ranks) {
    return bytes_for_gpus(ranks) + sizeof(AutotunerHeader) + ranks * kMaxAutotuners * sizeof(AutotunerEntry);
  }

  // The part of it that thread blocks on devices see, from its beginning.
  static std::size_t bytes_for_gpus(Rank ranks) { return sizeof(BoardHeader) + ranks * sizeof(BoardEntry); }

  Board() = default;
  const Segment& segment() const { return memory_; }

  // Before anything else: these are on other hosts.
  void set_apart(const std::vector<Rank>& is_remote);

  Rank ranks() const { return header().ranks; }
  bool is_remote(Rank rank) const;
  Rank ranks_here() const { return ranks() - static_cast<Rank>(spans_hosts_.size()); }
  BoardEntry& entry(Rank rank) const { return *entries_[rank]; }
  bool failed() const { return load_acquire(&header().failed) != 0; }
  const std::uint32_t* failed_word() const { return &header().failed; }  // Not 0: failed.
  // Keeps the first failure, here and for all ranks; later ones are dropped.
  void fail(Rank finder, const Status& status, FailureReason reason = FailureReason::shared) const;
  // Returns the failure as reported to `self`: the text, and the rank that found it unless the text names that
  // rank. If a group was cancelled, the rank that cancelled it gets the reason, and the others get that rank.
  Status failure(Rank self) const;
  bool found_by(Rank rank) const { return header().rank == rank; }
  // The same as data, for other hosts: what publish() there makes known.
  std::vector<std::byte> failure_record() const;
  void publish(std::span<const std::byte> failure) const;

  // Failed communicator: deadline by which its ranks stop waiting for remote access to their memory. The first rank
  // that asks sets it. Never later than `wanted`.
  Deadline remote_access_deadline(const Deadline& wanted) const;

  // The call `sequence` of `rank` if it is still on the board, whole.
  std::optional<CallRecord> call(Rank rank, std::uint64_t sequence) const;
  void announce(Rank self, const CallRecord& record) const;
  // Shows the CPUs that this thread may run on, the first time.
  void show_cpus(Rank self) const;
  // How many CPUs the ranks of this host have together, or fewer where two share a bit; nothing until all have shown
  // theirs.
  std::optional<std::uint32_t> cpus() const;
  // The last call that the rank announced; 0: none.
  std::uint64_t last(Rank rank) const;

  // Where all ranks are on one host.
  AutotunerHeader& autotuners() const;
  AutotunerEntry& autotuner_entry(std::uint32_t place, Rank rank) const;
  Switchover switchover(std::uint32_t place) const;

 private:
  Board(Segment memory, Rank ranks);
  BoardHeader& header() const { return *reinterpret_cast<BoardHeader*>(memory_.data()); }

  Segment memory_;
  std::vector<BoardEntry*> entries_;
  std::vector<std::unique_ptr<BoardEntry>> spans_hosts_;
};

std::string describe(const CallRecord& record);  // "all_reduce(1024 float32, sum)"

}  // namespace tutti
