#include "tools/tutti/explain_forced.h"

#include <string_view>

#include "algorithms/catalogue.h"
#include "src/base/config.h"
#include "src/communicator/forced.h"

namespace tutti {
namespace {

// The variable that was set: ours, or NCCL's of the same meaning.
std::string source_of(std::string_view variable) {
  for (const Setting& setting : settings())
    if (setting.variable->name == variable) return setting.source;
  return std::string(variable);
}

// Why a communicator would leave the choice open; empty: it would not.
std::string against(const Problem& problem) {
  const Algorithm* algorithm = find(problem.collective, config().algorithm);
  if (algorithm == nullptr) return std::string(name(problem.collective)) + " has none of this name";
  if (config().nccls_algorithm && !algorithm->supports(problem)) return "it does not do " + describe(problem);
  return {};
}

}  // namespace

Status heed_environment(const Problem& problem, ForcedNames& names, std::string& words) {
  const Config& from = config();
  if (names.algorithm.empty() && !from.algorithm.empty()) {
    TUTTI_CHECK_OK(check_algorithm("TUTTI_ALGORITHM", from.algorithm));
    const std::string why = against(problem);
    words += (words.empty() ? "" : " ") + source_of("TUTTI_ALGORITHM") + " forces " + from.algorithm +
             (why.empty() ? "" : ", without effect here: " + why) + ".";
    if (why.empty()) names.algorithm = from.algorithm;
  }
  if (names.protocol.empty() && !from.protocol.empty()) {
    TUTTI_CHECK_OK(check_protocol("TUTTI_PROTOCOL", from.protocol));
    words += (words.empty() ? "" : " ") + source_of("TUTTI_PROTOCOL") + " forces " + from.protocol + ".";
    names.protocol = from.protocol;
  }
  return {};
}

Status heed_wire(Query& query, std::string& words) {
  const Config& from = config();
  if (!from.refused.empty()) return invalid_argument(from.refused);
  TUTTI_CHECK_OK(check_bounded_rounding("TUTTI_WIRE_ROUNDING and TUTTI_MAX_RELATIVE_ERROR",
                                        from.wire_stochastic ? Rounding::stochastic : Rounding::nearest,
                                        from.max_relative_error));
  if (!from.wire.empty()) query.wire = TUTTI_TRY(parse_wire(from.wire));
  query.max_relative_error = from.max_relative_error;
  TUTTI_CHECK_OK(check_wire_or_bound("TUTTI_WIRE and TUTTI_MAX_RELATIVE_ERROR", from.wire, query.max_relative_error));
  if (query.wire != WireFormat::none) words += "TUTTI_WIRE asks for " + from.wire + ".";
  if (query.max_relative_error > 0) words += "TUTTI_MAX_RELATIVE_ERROR bounds the error.";
  return {};
}

}  // namespace tutti
