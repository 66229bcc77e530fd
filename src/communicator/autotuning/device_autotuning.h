// Autotuning of a communicator whose ranks are on devices of one host. Calls of one collective with similar block
// sizes form a class and share an autotuner (src/tuner/autotuner.h). All ranks make the same calls in the same order,
// so the n-th call of a class is the same on all ranks, whether captured, grouped or neither. Its candidate is a
// function of n and of the decisions so far.
//
// A call is enqueued long before its duration is known. Each rank times its calls in the stream, reads its timers
// when it enqueues later ones, and publishes its figures of a stage on the board. When all ranks have
// published theirs, rank 0 decides, and all ranks change over at one call without waiting for each other (Switchover).
// Until then, calls after the stage use the first candidate that is still considered.
//
// Rank 0 reads results of earlier runs from a file, and publishes them on the board when ranks join.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/communicator/autotuning/switchover.h"
#include "src/communicator/autotuning/tuning_class.h"
#include "src/communicator/control/board.h"
#include "src/executor/thread_block/device.h"

namespace tutti {

// Not thread-safe.
class DeviceAutotuning {
 public:
  // Calls of a class before tuning begins, so that rarely used calls are not tuned.
  static constexpr std::uint64_t kIdle = 16;

  struct Class;
  // Candidate of a call, fixed by assign().
  struct Assignment {
    const Call* call = nullptr;
    Class* tuned = nullptr;
    std::size_t candidate = 0;
    bool tried = false, counts = false;  // See Autotuner::Trial.
    bool settled = false;                // The candidate holds for all later calls of the class, too.
  };
  struct Class {
    static constexpr std::uint64_t kFirstMargin = 2;
    TuningClass tuning;
    std::uint32_t cell = 0;        // Cell on the board.
    std::uint64_t made = 0;        // Number of calls so far.
    std::uint64_t before = kIdle;  // Number of calls before the current stage.
    std::uint32_t stage = 1;       // Number of the current stage.
    // Timers of calls whose durations are not known yet, in call order; null: not timed.
    std::deque<std::unique_ptr<DeviceTimer>> awaited = {};
    // On rank 0: state after the stage, which takes effect once all ranks agree from which call on.
    std::optional<Autotuner> concluded = {};
    // Calls between the furthest rank and a proposed switchover.
    std::uint64_t margin = kFirstMargin;
    bool agreed = false;
    std::size_t meanwhile = 0;  // Candidate of the calls before the stage.
    // True if all future calls use the same candidate.
    bool settled() const { return tuning.autotuner.settled() && made >= before; }
    std::size_t next() const { return tuning.autotuner.next(); }  // Candidate of all calls once settled.
  };

  struct Environment {
    const Board& board;  // Outlives this.
    Rank rank = 0;
    std::function<Result<std::unique_ptr<DeviceTimer>>()> make_timer;
    std::string machine_key;  // Key of the machine and the ranks under which results are saved.
  };
  DeviceAutotuning(const CommunicatorOptions& options, Environment environment);
  // Exchange results of earlier runs before the first call: rank 0 publishes them on the board, then the other ranks
  // read them.
  void publish_saved();
  void read_published();
  // On rank 0, merges the results of this run into the tune file. No effect on other ranks.
  void write() const;

  // Returns the class of a call with these candidates, creating it at its first call. A new class is settled at once if
  // there is nothing to try, a saved result exists, or no cell is free; this is the same on all ranks.
  Class& class_of(const Query& query, std::vector<Candidate> candidates);

  // Assigns a candidate to `call`, which follows the calls assigned before it. The address of `call` identifies it
  // until note_made() or cancel().
  void assign(Class& tuned, const Call& call);
  const Assignment* assignment_of(const Call& call) const;  // Null: assign() was not called for it.
  // Removes the oldest assignment, whose call is `call`, and keeps the timer that start_timing() began for it.
  void note_made(const Call& call);
  // Drops all assignments, whose calls will not be made, and the classes created for them.
  void cancel();
  // Keeps the classes created since the last keep_classes() or cancel(): a call of theirs is being made.
  void keep_classes() { fresh_.clear(); }

  // Enclose a call with an assignment in its stream, and time it if it counts. The stream must not be captured.
  Status start_timing(const Call& call, DeviceStream stream);
  Status end_timing(DeviceStream stream);

 private:
  bool is_root() const { return environment_.rank == 0; }
  std::unique_ptr<DeviceTimer> free_timer();
  void look_at_timers(Class& tuned);
  void publish_measurements(const Class& tuned) const;
  // Returns the sum of each burst over all ranks; nothing until all ranks have published theirs.
  std::optional<std::vector<std::uint64_t>> sums_of(const Class& tuned) const;
  void propose(Class& tuned);
  void change_over(Class& tuned, const Switchover::Decision& decision);
  Switchover switchover(const Class& tuned) const;

  const Environment environment_;
  SavedTuning saved_;
  std::map<TuningKey, Class> classes_;
  // Classes to remove if their calls are refused, because other ranks may have different ones.
  std::vector<TuningKey> fresh_;
  std::uint32_t cells_ = 0;        // Number of cells of the board in use.
  std::uint32_t being_tuned_ = 0;  // Number of classes being tuned.
  std::deque<Assignment> assigned_;
  std::vector<std::unique_ptr<DeviceTimer>> timers_;  // Free timers.
  std::uint32_t timers_made_ = 0;                     // Number of timers that exist.
  std::unique_ptr<DeviceTimer> running_;              // Timer of the call that is being enqueued.
  DeviceTimer* begun_ = nullptr;                      // running_ until end_timing(), else null.
};

}  // namespace tutti
