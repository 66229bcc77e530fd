// Compression format on devices under an error bound. The device table determines how a call runs in each format.
// Predictions determine which format pays, because the table has no costs of encoding and of links.
#include <algorithm>

#include "src/tuner/candidates.h"

namespace tutti {
namespace {

// True if the table's choice can be predicted and is feasible.
bool is_possible(const Query& query, const Choice& choice) {
  const auto named = [&](const Algorithm* algorithm) { return choice.algorithm == algorithm->name(); };
  const auto found = std::find_if(query.catalogue.begin(), query.catalogue.end(), named);
  return found != query.catalogue.end() && ruled_out(query, **found, choice.protocol).empty();
}

}  // namespace

CompressionFormat format_for_gpus(const Query& query) {
  if (query.max_relative_error == 0) return query.compression;
  Query requested = query;
  requested.compression = CompressionFormat::none;
  const Choice raw = choose_for_gpus(requested);
  if (!is_possible(requested, raw)) return CompressionFormat::none;
  double min_us = prediction_of(requested, raw).total_us() / kWorthRounding;
  CompressionFormat best = CompressionFormat::none;
  for (const CompressionFormat format : formats_of(query)) {
    requested.compression = format;
    const Choice choice = choose_for_gpus(requested);
    if (format == CompressionFormat::none || !is_possible(requested, choice)) continue;
    const double us = prediction_of(requested, choice).total_us();
    if (us >= min_us) continue;
    min_us = us;
    best = format;
  }
  return best;
}

}  // namespace tutti
