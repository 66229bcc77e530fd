// Our candidates in NCCL's table of algorithms and protocols, and what a plugin's changes to it mean.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "src/base/status.h"
#include "src/plan/problem.h"
#include "src/tuner/candidates.h"
#include "src/tuner/plugin/abi.h"

namespace tutti {

// One call, as plugins see it.
struct Question {
  Collective collective = Collective::all_reduce;
  Rank ranks = 1;
  std::uint64_t block_bytes = 0;
  bool registered = false;          // Its buffers are, on all ranks.
  std::uint32_t thread_blocks = 0;  // Channels that there may be; 0: on host memory, where there is one.
};

// The number that NCCL gives the collective; none: its tuners are not asked.
std::optional<std::int32_t> number_of(Collective collective);
// As NCCL counts: of what a rank sends or receives, whichever is more.
std::uint64_t bytes_of(const Question& question);

struct Projection {
  nccl_tuner::Table table;                                                                  // Predicted, microseconds.
  std::array<std::array<std::int32_t, nccl_tuner::kColumns>, nccl_tuner::kRows> candidate;  // -1: none.
  bool any = false;
};
// Of several candidates in one place, the first. What NCCL has no name for is left out.
Projection project(Collective collective, std::span<const Candidate> candidates);

struct PluginChoice {
  std::optional<std::size_t> candidate;  // None: our own choice stands.
  std::uint32_t channels = 0;            // 0: ours.

  bool silent() const { return !candidate && channels == 0; }
};
// What all ranks must have in common; 0 of a silent one.
std::uint32_t hash(const PluginChoice& advised, std::span<const Candidate> candidates);

// The fastest of the table, if the plugin has changed it in a place that has a candidate; among equals, the candidate
// that comes first. Fails for a table with a time that is no number, or that leaves nothing to choose. `channels`: 0 or
// less where the plugin leaves them; they hold for what has a place in the table.
Result<PluginChoice> judge(const Projection& before, const nccl_tuner::Table& after, std::int32_t channels);

// "Tree/LL128": of a place that it wants and where there is nothing; empty: of none.
std::string wanted_in_vain(const Projection& before, const nccl_tuner::Table& after);

}  // namespace tutti
