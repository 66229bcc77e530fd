// Which algorithm, protocol and loop a call gets. For now a table of crossovers measured on host memory; the same
// answer on every rank, because it sees only what all ranks share.
#pragma once

#include <cstdint>
#include <string_view>

#include "src/base/status.h"
#include "src/plan/loop.h"
#include "src/plan/problem.h"

namespace tutti {

inline constexpr std::string_view kProtocols[] = {"lines", "bulk"};

struct Query {
  Problem problem;                // in_place is not looked at: ranks may differ in it.
  std::uint64_t block_bytes = 0;  // Of what one rank contributes or receives.
  bool mapped = false;            // Every rank can read and write every rank's buffers.
  std::string_view algorithm;     // Forced, where not empty.
  std::string_view protocol;      // One of kProtocols, likewise.
};

struct Choice {
  std::string_view algorithm;     // A name of the catalogue.
  bool mapped = false;            // Works in the peers' memory.
  bool lines = false;             // The small-message protocol.
  std::uint64_t piece_bytes = 0;  // Longest message.
  Loop loop;                      // Pieces are filled in when the longest message is known.
};

// Fails for a forced protocol that there is not. A forced algorithm is taken as it is.
Result<Choice> choose(const Query& query);

}  // namespace tutti
