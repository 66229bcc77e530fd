// Autotuning of a communicator on host memory. Calls of one collective with similar block sizes form a class with
// two autotuners (src/tuner/autotuner.h): one for calls whose buffers all ranks can map, one for the others. All
// ranks make the same calls in the same order, and after they have met in a call all know its kind, so all count
// the same operations. At the end of a stage they add up their figures by a collective of their own. Rank 0 reads
// results of earlier runs from a file and broadcasts them before the first trial.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/communicator/planning/tuning_class.h"

namespace tutti {

class Autotuning {
 public:
  using TuningClass = tutti::TuningClass;

  struct Class {
    Collective collective = Collective::all_reduce;
    std::uint32_t size_class = 0;
    TuningClass lanes;
    // Calls whose buffers all ranks can map. Some candidates use lanes: while one of them is tried, buffers are not
    // exchanged, so that any call counts. None: memory is not mapped for such calls.
    std::optional<TuningClass> mapped;
    std::uint32_t alike = 0;  // Calls in a row of which ranks were asked, and that were mapped, or were not.
    bool was_mapped = false;

    ClassOfCalls calls_of(const TuningClass& tuning) const {
      return {collective, size_class, mapped && &tuning == &*mapped};
    }
    bool settled() const { return lanes.autotuner.settled() && (!mapped || mapped->autotuner.settled()); }
    // How the next call goes: in this way if all ranks can map the buffers; null: nobody asks. Otherwise in that.
    const Choice* by_mapped() const { return mapped && mapped->next().mapped ? &mapped->next() : nullptr; }
    const Choice& through_lanes() const;
    // The call has been made, and this rank took so long. A contest of which a stage has ended: the ranks are to add up
    // what they have seen of it. Null: none.
    TuningClass* took(bool ran_mapped, std::int64_t duration_ns);
    void conclude(TuningClass& tuning, std::span<const std::uint64_t> sums_ns, Rank ranks);
    // Where mapped memory has lost, no call is asked about any more: all go through lanes, in the way that won.
    void stop_asking();
  };

  // `place`: what of the machine and the ranks lets another run take what was kept here; see planning/machine_name.h.
  Autotuning(const CommunicatorOptions& options, Rank rank, std::string place);

  // The class of a call that has these candidates, if all ranks could map its buffers. Made at its first call; later
  // ones have the same candidates, maybe in another order: where lines end within a size class, or mapped memory begins
  // to pay, there are two.
  Class& class_of(const Query& query, std::vector<Candidate> candidates);

  SavedTuning& kept() { return kept_; }
  void write() const;                                                // Saves the results of this run.
  void report(const Class& tuned, const TuningClass& tuning) const;  // Once it is settled: for the log.

 private:
  const Rank rank_;
  SavedTuning kept_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Class> classes_;  // By their calls, and by their candidates.
};

}  // namespace tutti
