#include "src/plan/cost_law.h"

namespace tutti {

CostLaw divided(const CostLaw& cost_law, std::uint64_t parts) {
  const auto share = 1 / static_cast<double>(parts);
  CostLaw part = cost_law;
  for (Traffic& level : part.levels) {
    for (double* blocks : {&level.chain, &level.sent, &level.received, &level.between}) *blocks *= share;
  }
  for (double* blocks : {&part.folded, &part.copied, &part.longest}) *blocks *= share;
  part.units *= parts;
  return part;
}

CostLaw then(const CostLaw& first, const CostLaw& next) {
  CostLaw both = first;
  for (std::size_t i = 0; i < CostLaw::kLevels; ++i) {
    Traffic& level = both.levels[i];
    const Traffic& more = next.levels[i];
    level.depth += more.depth;
    level.chain += more.chain;
    level.stalls += more.stalls;
    level.sent += more.sent;
    level.received += more.received;
    level.messages += more.messages;
    level.between += more.between;
  }
  both.folded += next.folded;
  both.copied += next.copied;
  both.rounded += next.rounded;
  both.longest = std::max(first.longest, next.longest);
  both.peers = std::max(first.peers, next.peers);
  both.units = std::max(first.units, next.units);
  return both;
}

}  // namespace tutti
