// Autotuning of a communicator on host memory. Calls of one collective with similar block sizes form a class. A class
// has two autotuners (src/tuner/autotuner.h): one for calls whose buffers all ranks can map, one for other calls. All
// ranks make the same calls in the same order, and determine its kind during the call, so all ranks count the same
// operations. At the end of a stage the ranks sum up their measurements by an internal collective. Rank 0 reads results
// of earlier runs from a file, and broadcasts them before autotuning starts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "src/communicator/autotuning/tuning_class.h"

namespace tutti {

class HostAutotuning {
 public:
  // Choices that a call tries.
  struct Trial {
    Choice lanes;
    std::optional<Choice> mapped;  // Used if all ranks can map the buffers. Empty: buffers are not shown.
    bool operator<(const Trial& other) const { return names() < other.names(); }

   private:
    std::tuple<std::string_view, Protocol, std::string_view> names() const {
      return {lanes.algorithm, lanes.protocol, mapped ? mapped->algorithm : ""};
    }
  };

  struct Class {
    TuningClass lanes;
    // Calls whose buffers all ranks can map. Some candidates use lanes. While one of them is tried, buffers are not
    // shown, so any call counts. Empty: such calls do not use mapped memory.
    std::optional<TuningClass> mapped;
    // Consecutive calls with the same result (mapped or not), among those in which ranks showed their buffers.
    std::uint32_t alike = 0;
    bool was_mapped = false;

    bool settled() const { return lanes.autotuner.settled() && (!mapped || mapped->autotuner.settled()); }
    // Returns how the next call runs if all ranks can map the buffers; null: buffers are not shown. Otherwise the call
    // runs as through_lanes() returns.
    const Choice* by_mapped() const { return mapped && mapped->next().mapped ? &mapped->next() : nullptr; }
    const Choice& through_lanes() const;
    Trial next() const {
      const Choice* const in_mapped = by_mapped();
      return {through_lanes(), in_mapped == nullptr ? std::nullopt : std::optional(*in_mapped)};
    }
    // Records that a call took `duration_ns` on this rank. If this ends a stage, returns the autotuner whose
    // measurements the ranks must sum up; otherwise returns null.
    TuningClass* record(bool ran_mapped, std::int64_t duration_ns);
    void conclude(TuningClass& tuning, std::span<const std::uint64_t> sums_ns, Rank ranks);
    // If candidates with mapped memory have lost, settles `lanes` too: all calls then use lanes with the winning
    // choice.
    void drop_mapped_candidates();
  };

  // `machine` is the machine name under which results are saved; see autotuning/machine_name.h.
  HostAutotuning(const CommunicatorOptions& options, Rank rank, std::string machine);

  // Returns the class of a call with these candidates, which include mapped ones if all ranks could map its buffers.
  // Creates it at its first call. Later calls of the class have the same candidates, possibly in another order. A size
  // class has two classes if LL ends within it, or if mapped memory becomes faster within it.
  Class& class_of(const Query& query, std::vector<Candidate> candidates);

  SavedTuning& saved() { return saved_; }
  void write() const;  // Saves the results of this run.

 private:
  SavedTuning saved_;
  std::map<TuningKey, Class> classes_;
};

}  // namespace tutti
