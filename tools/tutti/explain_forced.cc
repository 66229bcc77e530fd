#include "tools/tutti/explain_forced.h"

#include <string_view>

#include "algorithms/catalogue.h"
#include "src/base/config.h"
#include "src/base/counted.h"
#include "src/communicator/call/carriers.h"
#include "src/communicator/call/forced.h"

namespace tutti::tool {
namespace {

// The variable that was set: ours, or NCCL's alias.
std::string source_of(std::string_view variable) {
  for (const Setting& setting : settings())
    if (setting.variable->name == variable) return setting.source;
  return std::string(variable);
}

// Reason why a communicator ignores the forced algorithm; empty: it does not.
std::string against(const Query& query) {
  const Problem& problem = query.problem;
  const Algorithm* algorithm = find(problem.collective, config().algorithm);
  if (algorithm == nullptr) return std::string(name(problem.collective)) + " has no algorithm of this name";
  if (!config().algorithm_is_from_nccl) return {};
  if (!algorithm->supports(problem)) return "it does not support " + describe(problem);
  if (algorithm->name() == kSwitchStaged &&
      (!query.by_switches || query.network || query.compression != CompressionFormat::none))
    return "no switches add or multicast the elements of the call";
  return {};
}

// Reason why a communicator ignores the forced protocol. Communicators on GPUs may have further reasons.
std::string against_protocol(const Query& query) {
  const Config& from = config();
  if (!from.protocol_is_from_nccl) return {};
  if (query.thread_blocks == 0 && from.protocol == "LL128") return "LL128 is for GPUs";
  if (query.thread_blocks > 0 && from.protocol != "Simple" && query.compression != CompressionFormat::none)
    return "on GPUs, Simple is the only protocol for compressed messages";
  if (query.network && from.protocol != "Simple" && query.remote_ll_channels > 0)
    return "between hosts, the library chooses between LL and Simple";
  if (query.network && from.protocol != "Simple") return "between hosts, Simple is the only protocol";
  return {};
}

void add_sentence(std::string& words, const std::string& sentence) { words += (words.empty() ? "" : " ") + sentence; }

}  // namespace

Status apply_environment(const Query& query, ForcedNames& names, std::string& words) {
  const Config& from = config();
  if (names.algorithm.empty() && !from.algorithm.empty()) {
    TUTTI_CHECK_OK(check_algorithm("TUTTI_ALGORITHM", from.algorithm));
    const std::string why = against(query);
    add_sentence(
        words, source_of("TUTTI_ALGORITHM") +
                   (why.empty() ? " forces " + from.algorithm : "=" + from.algorithm + " has no effect here: " + why) +
                   ".");
    if (why.empty()) names.algorithm = from.algorithm;
  }
  if (names.protocol.empty() && !from.protocol.empty()) {
    TUTTI_CHECK_OK(check_protocol("TUTTI_PROTOCOL", from.protocol));
    const std::string why = against_protocol(query);
    add_sentence(words, source_of("TUTTI_PROTOCOL") +
                            (why.empty() ? " forces " + from.protocol : " has no effect here: " + why) + ".");
    if (why.empty()) names.protocol = from.protocol;
  }
  // The number of channels is checked even if names are forced.
  if (query.thread_blocks == 0) return check_on_host_memory("", from.channels);
  if (query.channels > 0) add_sentence(words, "TUTTI_CHANNELS selects " + counted(query.channels, "channel") + ".");
  return {};
}

Status apply_transport(Rank hosts, Query& query, std::string& words) {
  const std::string& requested = config().transport;
  if (requested.empty()) return {};
  TUTTI_CHECK_OK(check_transport("TUTTI_TRANSPORT", requested));
  if (hosts == 0) {
    add_sentence(words, "TUTTI_TRANSPORT has no effect here: --topology determines the links.");
    return {};
  }
  if (requested == "shm" && hosts > 1)
    return invalid_argument("TUTTI_TRANSPORT is shm, which works within one host, but --groups has " +
                            std::to_string(hosts) + " hosts: unset it, or add --transport tcp");
  const std::string network = network_of(requested);
  const bool within_hosts = !requested.starts_with("shm");
  std::string taken;
  if (network != "shm" && network != "tcp" && (within_hosts || hosts > 1)) taken = " (predicted like tcp)";
  if (within_hosts) {
    query.network = true;
    if (!query.problem.groups.empty()) taken += ", also within hosts";
    query.problem.groups.clear();
  }
  add_sentence(words, "TUTTI_TRANSPORT selects " + requested + taken + ".");
  return {};
}

Status apply_compression(Query& query, std::string& words) {
  const Config& from = config();
  TUTTI_CHECK_OK(check_bounded_rounding("TUTTI_COMPRESS_ROUNDING and TUTTI_MAX_RELATIVE_ERROR",
                                        from.compression_stochastic ? Rounding::stochastic : Rounding::nearest,
                                        from.max_relative_error));
  if (!from.compression.empty()) query.compression = TUTTI_TRY(parse_compression(from.compression));
  query.max_relative_error = from.max_relative_error;
  TUTTI_CHECK_OK(check_compression_or_bound("TUTTI_COMPRESS and TUTTI_MAX_RELATIVE_ERROR", from.compression,
                                            query.max_relative_error));
  if (query.compression != CompressionFormat::none)
    add_sentence(words, "TUTTI_COMPRESS selects " + from.compression + ".");
  if (query.max_relative_error > 0) add_sentence(words, "TUTTI_MAX_RELATIVE_ERROR bounds the error.");
  return {};
}

}  // namespace tutti::tool
