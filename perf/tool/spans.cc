#include "perf/tool/spans.h"

#include <algorithm>
#include <cstdint>
#include <set>

namespace perf {
namespace {

// Sizes that used the same algorithm.
struct Span {
  std::string choice;
  std::set<std::uint64_t> sizes;
};

// Lists ranges of consecutive sizes: "8 and 128 to 512 B". `all`: all measured sizes.
std::string words_of(const std::set<std::uint64_t>& sizes, const std::set<std::uint64_t>& all) {
  std::string text;
  for (auto size = all.begin(); size != all.end();) {
    if (!sizes.contains(*size)) {
      ++size;
      continue;
    }
    const std::uint64_t min = *size;
    std::uint64_t max = min;
    for (; size != all.end() && sizes.contains(*size); ++size) max = *size;
    text += (text.empty() ? "" : " and ") + std::to_string(min);
    if (max != min) text += " to " + std::to_string(max);
  }
  return text + " B";
}

}  // namespace

std::string spans_of(const std::vector<Row>& rows, Timing Row::*timing_of) {
  std::vector<Span> spans;
  std::set<std::uint64_t> all;
  for (const Row& row : rows) {
    const Timing& timing = row.*timing_of;
    if (timing.algorithm.empty()) continue;
    const std::string choice = timing.algorithm + (timing.protocol.empty() ? "" : " (" + timing.protocol + ")") +
                               (timing.rounds() ? " in " + timing.compression : "");
    auto span = std::find_if(spans.begin(), spans.end(), [&](const Span& one) { return one.choice == choice; });
    if (span == spans.end()) span = spans.insert(span, {choice, {}});
    span->sizes.insert(row.bytes);
    all.insert(row.bytes);
  }
  std::string text;
  for (const Span& span : spans) text += (text.empty() ? "" : ", ") + span.choice + " " + words_of(span.sizes, all);
  return text;
}

}  // namespace perf
