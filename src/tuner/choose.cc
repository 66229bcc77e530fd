#include "src/tuner/choose.h"

#include <algorithm>
#include <string>

#include "src/base/nearest_name.h"
#include "src/tuner/candidates.h"
#include "src/tuner/chunks.h"

namespace tutti {
namespace {

Choice forced_choice(const Query& query) {
  const Protocol protocol = query.protocol == "LL" ? Protocol::ll : Protocol::simple;
  return choice_of(query, query.algorithm, protocol);
}

}  // namespace

Status check_protocol(std::string_view protocol) {
  if (protocol.empty() || std::find(std::begin(kProtocols), std::end(kProtocols), protocol) != std::end(kProtocols))
    return {};
  return invalid_argument("unknown protocol '" + std::string(protocol) + "': " + suggestion(protocol, kProtocols));
}

Status check_query(const Query& query) {
  TUTTI_CHECK_OK(check_protocol(query.protocol));
  if (query.thread_blocks == 0 && query.protocol == "LL128")
    return unsupported("protocol 'LL128' needs GPUs: use LL or Simple on host memory");
  return {};
}

std::uint64_t message_bytes(const Query& query, CompressionFormat compression) {
  if (compression == CompressionFormat::none) return query.block_bytes;
  return compressed_bytes(compression, query.block_bytes / size_of(query.type), query.type);
}

Choice choice_of(const Query& query, std::string_view algorithm, Protocol protocol) {
  if (query.thread_blocks > 0) {
    Query forced = query;
    forced.algorithm = algorithm;
    forced.protocol = name(protocol);
    return choose_for_gpus(forced);
  }
  Choice choice;
  choice.algorithm = algorithm;
  choice.mapped = algorithm.ends_with("_mapped");
  choice.staged = algorithm.ends_with("_staged");
  choice.compression = query.compression;
  choice.protocol = protocol;
  choice.chunk_bytes = chunk_bytes(query, algorithm, protocol);
  choice.loop.skew = 1;
  choice.loop.order = StageOrder::earliest_first;
  return choice;
}

Result<Choice> choose(const Query& query) {
  TUTTI_CHECK_OK(check_query(query));
  if (query.thread_blocks > 0) {
    Query requested = query;
    requested.compression = format_for_gpus(query);
    return choose_for_gpus(requested);
  }
  const std::vector<Candidate> possible = TUTTI_TRY(candidates(query));
  if (!possible.empty()) return possible.front().choice;
  if (!query.algorithm.empty()) return forced_choice(query);
  return unsupported("no algorithm supports " + describe(query.problem) +
                     (query.protocol.empty() ? "" : " with protocol '" + std::string(query.protocol) + "'"));
}

}  // namespace tutti
