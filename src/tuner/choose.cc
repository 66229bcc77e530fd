#include "src/tuner/choose.h"

#include <algorithm>
#include <string>

#include "src/tuner/candidates.h"
#include "src/tuner/pieces.h"

namespace tutti {
namespace {

Choice forced_choice(const Query& query) {
  const Protocol protocol = query.protocol == "lines" ? Protocol::lines : Protocol::bulk;
  return choice_of(query, query.algorithm, protocol);
}

}  // namespace

Status check_protocol(std::string_view protocol) {
  if (protocol.empty() || std::find(std::begin(kProtocols), std::end(kProtocols), protocol) != std::end(kProtocols))
    return {};
  return invalid_argument("there is no protocol '" + std::string(protocol) +
                          "'; the protocols are lines, bulk and, on GPUs, rows");
}

Status check_query(const Query& query) {
  TUTTI_CHECK_OK(check_protocol(query.protocol));
  if (query.teams == 0 && query.protocol == "rows")
    return unsupported("protocol 'rows' is for GPUs: on host memory take lines or bulk");
  return {};
}

std::uint64_t message_bytes(const Query& query, WireFormat wire) {
  if (wire == WireFormat::none) return query.block_bytes;
  return wire_bytes(wire, query.block_bytes / size_of(query.type), query.type);
}

Choice choice_of(const Query& query, std::string_view algorithm, Protocol protocol) {
  if (query.teams > 0) {
    Query forced = query;
    forced.algorithm = algorithm;
    forced.protocol = name(protocol);
    return choose_for_teams(forced);
  }
  Choice choice;
  choice.algorithm = algorithm;
  choice.mapped = algorithm.ends_with("_mapped");
  choice.wire = query.wire;
  choice.protocol = protocol;
  choice.piece_bytes = piece_bytes(query, algorithm, protocol);
  choice.loop.skew = 1;
  choice.loop.order = StageOrder::earliest_first;
  return choice;
}

Result<Choice> choose(const Query& query) {
  TUTTI_CHECK_OK(check_query(query));
  if (query.teams > 0) {
    Query asked = query;
    asked.wire = format_for_teams(query);
    return choose_for_teams(asked);
  }
  const std::vector<Candidate> possible = TUTTI_TRY(candidates(query));
  if (!possible.empty()) return possible.front().choice;
  if (!query.algorithm.empty()) return forced_choice(query);
  return unsupported("no algorithm does " + describe(query.problem) +
                     (query.protocol.empty() ? "" : " with protocol '" + std::string(query.protocol) + "'"));
}

}  // namespace tutti
