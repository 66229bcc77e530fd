// Autotuning of a communicator whose ranks are on devices of one host. Calls of one collective with similar block
// sizes form a class and share an autotuner (src/tuner/autotuner.h). All ranks make the same calls in the same
// order. So the n-th call of a class is the same on all ranks, captured, grouped or not, and its candidate is a
// function of n and of the decisions so far.
//
// A call is enqueued long before its duration is known. Each rank times its calls in the stream, reads its timers
// when it enqueues later ones, and publishes its figures of a stage on the board. Once all have, rank 0 decides,
// and all ranks change over at one call without waiting for each other (Switchover). Until then, calls after the
// stage use the first candidate that is still considered.
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
#include <utility>
#include <vector>

#include "src/communicator/control/board.h"
#include "src/communicator/planning/tuning_class.h"
#include "src/executor/thread_block/device.h"

namespace tutti {

// A thread at a time.
class DeviceAutotuning {
 public:
  static constexpr std::uint64_t kIdle = 16;  // Calls of a class before its trial: what is called a few times has none.

  struct Class;
  // How a call goes that was decided about.
  struct Turn {
    const Call* call = nullptr;
    Class* tuned = nullptr;
    std::size_t candidate = 0;
    bool tried = false, counts = false;  // As in Autotuner::Turn.
    bool settled = false;                // So do all that come later.
  };
  struct Class {
    static constexpr std::uint64_t kFirstMargin = 2;
    ClassOfCalls calls;
    TuningClass tuning;
    std::uint32_t place = 0;       // On the board.
    std::uint64_t made = 0;        // Calls so far,
    std::uint64_t before = kIdle;  // and those before the stage that runs.
    std::uint32_t stage = 1;       // Its number.
    // Calls whose times are not known yet, in order; null: not timed.
    std::deque<std::unique_ptr<DeviceTimer>> awaited = {};
    // On rank 0: what the stage has come to, which the others take over once it is agreed from which call on.
    std::optional<Autotuner> concluded = {};
    std::uint64_t margin = kFirstMargin;
    bool agreed = false;
    std::size_t meanwhile = 0;  // Candidate of the calls before the stage.
    // All calls that are still to be made go alike.
    bool settled() const { return tuning.autotuner.settled() && made >= before; }
  };

  struct Means {
    const Board& board;  // Outlives this.
    Rank rank = 0;
    std::function<Result<std::unique_ptr<DeviceTimer>>()> make_timer;
    std::string place;  // Key of the machine and the ranks under which results are saved.
  };
  DeviceAutotuning(const CommunicatorOptions& options, Means means);

  // Results of earlier runs: rank 0 publishes them, then the others read them, before the first call.
  void show_kept();
  void see_kept();
  // Adds what this run has kept to the file, on rank 0.
  void write() const;

  // The class of a call that has these candidates; made at its first call. Settled at once where there is nothing to
  // try, something was kept, or no room on the board: alike on all ranks.
  Class& class_of(const Query& query, std::vector<Candidate> candidates);

  // The call will be made, after those that were decided about: which way it goes. Its address names it.
  void decide(Class& tuned, const Call& call);
  const Turn* decided(const Call& call) const;  // Null: it was not.
  // It is made, the first of those: on the timer that start_timing() has begun.
  void made(const Call& call);
  // None of those that were decided about will be, and classes that were made for them are gone.
  void forget();
  // The first of the calls for which classes were made is: they stay.
  void keep() { fresh_.clear(); }

  // Around a call that is decided about, if it counts: in the stream, which is not captured.
  Status start_timing(const Call& call, DeviceStream stream);
  Status end_timing(DeviceStream stream);

 private:
  bool decides() const { return means_.rank == 0; }
  std::unique_ptr<DeviceTimer> free_timer();
  void look_at_timers(Class& tuned);
  void notify(const Class& tuned) const;
  // Returns the sum of each burst over all ranks; nothing until all ranks have published theirs.
  std::optional<std::vector<std::uint64_t>> sums_of(const Class& tuned) const;
  void propose(Class& tuned);
  void change_over(Class& tuned, const Switchover::Decision& decision);

  const Means means_;
  SavedTuning kept_;
  using Key = std::pair<std::uint32_t, std::uint32_t>;  // Key of the calls, and of the candidates.
  std::map<Key, Class> classes_;
  std::vector<Key>
      fresh_;  // Classes to remove if their calls are refused, because other ranks may have different ones.
  std::uint32_t places_ = 0;       // That are taken.
  std::uint32_t being_tuned_ = 0;  // Number of classes being tuned.
  std::deque<Turn> decided_;
  std::vector<std::unique_ptr<DeviceTimer>> timers_;  // That are free,
  std::uint32_t timers_made_ = 0;                     // of so many.
  std::unique_ptr<DeviceTimer> running_;              // Timer of the call that is being enqueued.
  DeviceTimer* begun_ = nullptr;                      // The same, until its end.
};

}  // namespace tutti
