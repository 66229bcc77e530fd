// Which algorithm, protocol, loop and channels a call gets. For now tables of crossovers: on host memory they were
// measured, on devices they are estimates. The same answer on every rank, because it sees only what all ranks share.
#pragma once

#include <cstdint>
#include <string_view>

#include "src/base/protocol.h"
#include "src/base/status.h"
#include "src/plan/loop.h"
#include "src/plan/problem.h"

namespace tutti {

inline constexpr std::string_view kProtocols[] = {"lines", "bulk", "rows"};

struct Query {
  Problem problem;                // in_place is not looked at: ranks may differ in it. Groups: of ranks of a host.
  std::uint64_t block_bytes = 0;  // Of what one rank contributes or receives.
  bool mapped = false;            // Every rank can read and write every rank's buffers.
  std::string_view algorithm;     // Forced, where not empty.
  std::string_view protocol;      // One of kProtocols, likewise; rows are for devices.
  bool network = false;           // Some ranks are on other hosts.
  std::uint32_t teams = 0;        // On a device: channels of a rank that can be under way at once. 0: on host memory.
};

struct Choice {
  std::string_view algorithm;  // A name of the catalogue.
  bool mapped = false;         // Works in the peers' memory.
  Protocol protocol = Protocol::bulk;
  std::uint64_t piece_bytes = 0;  // Longest message.
  std::uint32_t channels = 1;
  Loop loop;  // Pieces are filled in when the longest message is known.
};

// Fails for a forced protocol that there is not. A forced algorithm is taken as it is.
Result<Choice> choose(const Query& query);

// Fails unless it is empty or one of kProtocols.
Status check_protocol(std::string_view protocol);
// Whether blocks should cross each host's link once, and whether a whole block to each rank costs less than two rounds
// of parts over a network.
bool minds_hosts(const Query& query);
bool one_round_pays(const Query& query);
// The part of choose() that is for devices.
Choice choose_for_teams(const Query& query);

}  // namespace tutti
