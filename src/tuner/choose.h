// Which algorithm, protocol, loop and channels a call gets: on host memory what is predicted to take the least time, on
// devices a table of estimates. The same answer on every rank, because it sees only what all ranks share.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "src/base/protocol.h"
#include "src/base/status.h"
#include "src/compression/format.h"
#include "src/model/machine.h"
#include "src/plan/algorithm.h"
#include "src/plan/loop.h"
#include "src/plan/problem.h"

namespace tutti {

inline constexpr std::string_view kProtocols[] = {"LL", "Simple", "LL128"};

struct Query {
  Problem problem;                // in_place is not looked at: ranks may differ in it. Groups: of ranks of a host.
  std::uint64_t block_bytes = 0;  // Of what one rank contributes or receives, in memory.
  bool mapped = false;            // Every rank can read and write every rank's buffers.
  std::string_view algorithm;     // Forced, where not empty.
  std::string_view protocol;      // One of kProtocols, likewise; rows are for devices.
  // How messages carry the elements, which are of this type: rounded to a format, or as they are. Where there is a
  // bound on the relative error (root mean square) of results, above 0, the format is part of the choice.
  CompressionFormat compression = CompressionFormat::none;
  double max_relative_error = 0;
  DataType type = DataType::float32;
  bool network = false;             // Some ranks are on other hosts.
  std::uint32_t thread_blocks = 0;  // On a device: channels of a rank that can be under way at once. 0: on host memory.
  // On devices: within a host NVLinks lead to all ranks along rings, but not from each rank to each other.
  bool only_rings = false;
  // On devices, of channels: so many are asked for, where not 0; messages have lanes for so many; and those of plans
  // that go round take so many orders of ranks in turns.
  std::uint32_t channels = 0;
  std::uint32_t lane_channels = ~0U;
  std::uint32_t orders = 1;
  std::span<const Algorithm* const> catalogue{};  // Of the collective: what there is to choose among.
  const Machine* machine = nullptr;               // What it runs on; null: what most do.
};

struct Choice {
  std::string_view algorithm;  // A name of the catalogue.
  bool mapped = false;         // Works in the peers' memory.
  CompressionFormat compression = CompressionFormat::none;
  Protocol protocol = Protocol::simple;
  std::uint64_t chunk_bytes = 0;  // Longest message.
  std::uint32_t channels = 1;
  Loop loop;  // Pieces are filled in when the longest message is known.
};

// The first of the candidates. A forced algorithm is taken as it is, whether it does the problem or not. Fails for a
// forced protocol that there is not, and where nothing is possible.
Result<Choice> choose(const Query& query);

// Fails unless it is empty or one of kProtocols; and of a query, unless what is forced can be heeded there.
Status check_protocol(std::string_view protocol);
Status check_query(const Query& query);
// Of a block, in messages of a format.
std::uint64_t message_bytes(const Query& query, CompressionFormat compression);
// How an algorithm is run with a protocol, and messages as the query says.
Choice choice_of(const Query& query, std::string_view algorithm, Protocol protocol);
// The part of choose() that is for devices, and heeds what is forced; messages as the query says, whatever the bound.
Choice choose_for_gpus(const Query& query);
// Of a choice on devices: to what the query asks for and leaves room for.
void limit_channels(const Query& query, Choice& choice);
// Whether an algorithm of this name follows the order of ranks, one for each channel: ranks only speak to those before
// and behind them, and from host to host those at the ends.
bool goes_round(std::string_view algorithm);
// The format in which messages of a call on devices are predicted to take the least time, of those that are expected to
// keep to the query's bound; none where rounding does not gain enough. Without a bound that of the query.
CompressionFormat format_for_gpus(const Query& query);

}  // namespace tutti
