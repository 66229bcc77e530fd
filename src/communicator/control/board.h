// State that the ranks of one host share beside the data: the call of each rank, its CPUs, and the failure of the
// communicator. The board is one shared segment; each entry has one writer. Entries for ranks of other hosts lie in
// memory of this process, which updates them from notifications.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/access_words.h"
#include "src/base/atomic.h"
#include "src/base/clock.h"
#include "src/base/failed_words.h"
#include "src/base/sleep_word.h"
#include "src/base/status.h"
#include "src/base/types.h"
#include "src/communicator/call/forced.h"
#include "src/communicator/control/rejection_record.h"
#include "src/communicator/control/wait_record.h"
#include "src/plan/problem.h"
#include "transports/shm/segment.h"

namespace tutti {

// Position of a buffer, as other ranks can locate it.
struct BufferReference {
  std::uint64_t region = 0;  // Region that the owner has passed to its peers, or one of the constants below.
  std::uint64_t offset = 0;  // Offset into the region; for kOwnAddressSpace, an address.
};
static_assert(sizeof(BufferReference) == 16);
inline constexpr std::uint64_t kHiddenBuffer = 0;              // Private to its process; peers cannot access it.
inline constexpr std::uint64_t kNoBuffer = ~std::uint64_t{0};  // The rank has no such buffer in this collective.
// All ranks are threads of one process; `offset` is the address.
inline constexpr std::uint64_t kOwnAddressSpace = kNoBuffer - 1;

// One call of one rank. `sequence` is written last.
struct CallRecord {
  std::uint64_t sequence = 0;  // Number of the call: collectives of the communicator so far, including this one.
  std::uint64_t count = 0;
  std::uint32_t signature = 0;  // Must be equal on all ranks, otherwise the calls do not match.
  std::uint32_t root = 0;
  std::uint8_t collective = 0;
  std::uint8_t type = 0;
  std::uint8_t reduction = 0;
  // Used only for error messages; the signature includes these options.
  std::uint8_t advised : 1 = 0;  // 1: a tuner plugin has influenced the choice.
  std::uint8_t tune : 2 = 0;     // A Tune.
  std::uint8_t has_tune_file : 1 = 0;
  std::uint8_t by_copy_engines : 1 = 0;  // 1: copy engines run the call; `input` then has the place of all inputs.
  Requested requested;
  BufferReference input;
  BufferReference output;
};
static_assert(sizeof(CallRecord) == 64);

// Values of CallRecord::collective: all_to_all_v, which has a count per rank, and the all_gather of a split, which has
// this value as its CommunicatorOptions::agreement_hash, too.
inline constexpr std::uint8_t kUnequalCollective = 255;
inline constexpr std::uint8_t kSplitCollective = 254;
inline constexpr std::uint32_t kCallHistory = 16;

inline constexpr std::uint32_t kMaxCpus = 1024;

struct alignas(128) BoardEntry {
  std::uint32_t cpu = ~0U;                 // CPU on which the rank last ran. A waiting peer on the same CPU yields.
  std::uint32_t left = 0;                  // 1: the rank has finalized.
  std::uint32_t region_notifications = 0;  // Number of messages about its regions that the rank has sent to its peers.
  std::uint32_t cpus_shown = 0;            // 1: `cpus` is valid.
  std::uint32_t asleep = 0;                // The word on which the rank sleeps; see src/base/sleep_word.h.
  std::uint32_t allows_heavy_fence = 0;    // 1: heavy_fence() of other ranks acts on the rank.
  std::uint64_t cpus[kMaxCpus / 64] = {};  // CPUs that the rank may use; CPU c is bit c % kMaxCpus.
  std::uint64_t launches_with_progress =
      0;            // If ranks share the device in time slices: launches of the rank that made progress.
  WaitRecord wait;  // The last wait that the rank has shown.
  // Not 0: the rank may be accessing memory of its peers; see remote_access.h. On a cache line of its own.
  alignas(128) std::uint32_t remote_accesses = 0;
  alignas(128) CallRecord calls[kCallHistory];  // Call k is at k % kCallHistory.
  RejectionRecord rejection;                    // The last invalid call that the rank has shown.
};
static_assert(sizeof(BoardEntry) == 384 + kCallHistory * sizeof(CallRecord) + sizeof(RejectionRecord));

// ---- Autotuning of calls on devices ----

// Maximum number of cells. A tuning class that tries candidates has a cell: an AutotunerCell, and an AutotunerEntry for
// each rank. Classes get cells in the order of their first calls.
inline constexpr std::uint32_t kMaxAutotunerCells = 32;
// Maximum number of measurements that a rank reports for a stage.
inline constexpr std::size_t kMaxMeasurements = 56;
// Words of saved tuning results that rank 0 shares with the other ranks.
inline constexpr std::size_t kMaxSavedWords = 2 * 1024;

// Measurements of one rank for one cell.
struct alignas(128) AutotunerEntry {
  std::uint64_t shown = 0;           // Number of the rank's last call in the class; see Switchover.
  std::uint32_t measured_stage = 0;  // Number of the stage to which `measured_ns` belongs; written after `measured_ns`.
  std::uint32_t reserved = 0;
  std::uint32_t measured_ns[kMaxMeasurements] = {};
};
static_assert(sizeof(AutotunerEntry) == 256);

struct alignas(128) AutotunerHeader {
  struct alignas(64) AutotunerCell {
    std::uint64_t word = 0;  // State word of a Switchover.
  };
  AutotunerCell cells[kMaxAutotunerCells];
  std::uint32_t saved[kMaxSavedWords] = {};
};
static_assert(sizeof(AutotunerHeader) == 64 * kMaxAutotunerCells + 4 * kMaxSavedWords);

struct alignas(128) BoardHeader {
  std::uint32_t version = 0;
  std::uint32_t ranks = 0;
  std::uint32_t claimed = 0;  // 1: a rank has claimed the right to report the failure. The first failure is kept.
  std::uint32_t failed = 0;   // 1: `code` and `message` are valid.
  std::uint32_t code = 0;
  std::uint32_t rank = 0;    // Rank that found the failure.
  std::uint32_t reason = 0;  // A FailureReason.
  // 1: a rank sleeps until another rank has changed its entry.
  std::uint32_t watched = 0;
  // See Board::remote_access_deadline(); 0: not set.
  alignas(8) std::int64_t remote_access_deadline_ns = 0;
  char message[984] = {};
};
static_assert(sizeof(BoardHeader) == 1024);

// Kind of a failure, for ranks that did not find it. With `shared`, all ranks report the failure. With `called_off`,
// the finder will not run the calls of a group.
enum class FailureReason : std::uint32_t { shared, called_off };

class Board {
 public:
  // `ranks_here`: number of ranks on this host.
  static Result<Board> create(Rank ranks, Rank ranks_here);
  static Result<Board> create(Rank ranks) { return create(ranks, ranks); }
  static Result<Board> adopt(File file, Rank ranks, Rank ranks_here);
  static Result<Board> adopt(File file, Rank ranks) { return adopt(std::move(file), ranks, ranks); }

  // Size of the leading section of the board that thread blocks on devices access.
  static std::size_t bytes_for_gpus(Rank ranks_here) {
    return sizeof(BoardHeader) + kFailedSets * sizeof(FailedWords) + ranks_here * sizeof(AccessWords);
  }

  Board() = default;
  const Segment& segment() const { return memory_; }

  // Declares ranks that are on other hosts. Must be called before all other functions.
  void set_remote_ranks(const std::vector<Rank>& remote_ranks);

  Rank ranks() const { return header().ranks; }
  bool is_remote(Rank rank) const;
  Rank ranks_here() const { return ranks() - static_cast<Rank>(remote_entries_.size()); }
  BoardEntry& entry(Rank rank) const { return *entries_[rank]; }
  bool failed() const { return load_acquire(&header().failed) != 0; }
  const std::uint32_t* failed_word() const { return &header().failed; }  // Not 0: failed.
  // Words by which the thread blocks of a rank of this host announce accesses to memory of peers. Null for other ranks.
  AccessWords* access_words(Rank rank) const { return access_words_[rank]; }
  // Words that stop the thread blocks of the rank. Ranks with equal rank % kFailedSets share them.
  FailedWords& failed_words(Rank rank) const {
    return reinterpret_cast<FailedWords*>(memory_.data() + sizeof(BoardHeader))[rank % kFailedSets];
  }
  // Sets the words of all ranks. fail() calls this, and so does each rank that sees the failure, since the rank that
  // called fail() may have died before it set all words.
  void stop_thread_blocks() const;
  // Records a failure for all ranks of this host. Only the first failure is kept.
  void fail(Rank finder, const Status& status, FailureReason reason = FailureReason::shared) const;
  // Returns the failure as reported to `self`: the text, and the rank that found it unless the text names that rank. If
  // a rank has called off its group, that rank gets the reason, and the other ranks get that rank.
  Status failure(Rank self) const;
  bool found_by(Rank rank) const { return header().rank == rank; }
  // Returns the failure as data for other hosts. publish() records it there.
  std::vector<std::byte> failure_record() const;
  void publish(std::span<const std::byte> failure) const;

  // Returns the deadline until which the ranks of a failed communicator wait for remote access to their memory to end.
  // The first caller sets it for all ranks. Never later than `wanted`.
  Deadline remote_access_deadline(const Deadline& wanted) const;

  // Returns call `sequence` of `rank`; nullopt if the board does not hold it completely, or no longer.
  std::optional<CallRecord> call(Rank rank, std::uint64_t sequence) const;
  void announce(Rank self, const CallRecord& record) const;

  // Returns the word on which a rank of this host sleeps.
  std::uint32_t* sleep_word(Rank rank) const { return &entry(rank).asleep; }
  // Lets wake_watchers() of other ranks wake this rank. Called between setting its sleep word and its last poll.
  void watch() const { store_release(&header().watched, 1U); }
  // Wakes the ranks that watch the board. Called after this rank has changed its entry.
  void wake_watchers() const {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (load_relaxed(&header().watched) != 0) [[unlikely]]
      wake_all_watchers();
  }
  // Shows the CPUs that this thread may use. Later calls do nothing.
  void show_cpus(Rank self) const;
  // Returns the number of CPUs that the ranks of this host have together. CPUs that share a bit count once. Returns
  // nullopt until all ranks have shown their CPUs.
  std::optional<std::uint32_t> cpus() const;
  // Returns the number of the last call that the rank announced; 0: none.
  std::uint64_t last(Rank rank) const;
  // Returns "; a call of rank 1 was rejected: ...", to end a message about a wait for the rank. Empty if the rank has
  // rejected no call since its last collective.
  std::string describe_rejection(Rank rank) const;

  // Valid only if all ranks are on one host.
  AutotunerHeader& autotuners() const { return *autotuners_; }
  AutotunerEntry& autotuner_entry(std::uint32_t cell, Rank rank) const;

 private:
  static constexpr Rank kFailedSets = 4;

  Board(Segment memory, Rank ranks, Rank ranks_here);
  static std::size_t bytes(Rank ranks, Rank ranks_here);
  void find_access_words(const std::vector<Rank>& remote_ranks);
  void wake_all() const;
  void wake_all_watchers() const;
  BoardHeader& header() const { return *reinterpret_cast<BoardHeader*>(memory_.data()); }

  Segment memory_;
  std::vector<BoardEntry*> entries_;
  std::vector<AccessWords*> access_words_;
  AutotunerHeader* autotuners_ = nullptr;
  std::vector<std::unique_ptr<BoardEntry>> remote_entries_;
};

std::string describe(const CallRecord& record);  // Example: "all_reduce(1024 float32, sum)".

}  // namespace tutti
