// Our candidates in NCCL's table of algorithms and protocols, and the interpretation of a plugin's changes.
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
struct PluginCall {
  Collective collective = Collective::all_reduce;
  Rank ranks = 1;
  std::uint64_t block_bytes = 0;
  bool registered = false;          // Buffers are registered on all ranks.
  std::uint32_t thread_blocks = 0;  // Maximum channels; 0: host memory, with one channel.
};

// NCCL's number of the collective; nothing if NCCL has no tuning for it.
std::optional<std::int32_t> number_of(Collective collective);
// Message size as NCCL counts it: the larger of the bytes that a rank sends and receives.
std::uint64_t bytes_of(const PluginCall& question);

struct Projection {
  nccl_tuner::Table table;                                                                  // Predicted us.
  std::array<std::array<std::int32_t, nccl_tuner::kColumns>, nccl_tuner::kRows> candidate;  // -1: none.
  bool any = false;
};
// Fills the table. If several candidates share a table entry, the first one is used. Candidates without an NCCL name
// are omitted.
Projection project(Collective collective, std::span<const Candidate> candidates);

struct PluginChoice {
  std::optional<std::size_t> candidate;  // Nothing: keep our choice.
  std::uint32_t channels = 0;            // 0: keep ours.

  bool silent() const { return !candidate && channels == 0; }
};
// Value that all ranks must agree on; 0 if `advised` is silent.
std::uint32_t hash(const PluginChoice& advised, std::span<const Candidate> candidates);

// Returns the fastest entry, if the plugin has changed an entry that has a candidate; among equals, the first
// candidate. Fails for a table with a NaN, or with no available candidate. `channels`: 0 or less if unchanged by the
// plugin; used only if the result is in the table.
Result<PluginChoice> judge(const Projection& before, const nccl_tuner::Table& after, std::int32_t channels);

// Returns an entry such as "Tree/LL128" that the plugin requests but that has no candidate; empty if there is none.
std::string preferred_unavailable(const Projection& before, const nccl_tuner::Table& after);

}  // namespace tutti
