#include "perf/tool/ranks.h"

#include "perf/tool/fail.h"

namespace perf {
namespace {

const char* unless_empty(const std::string& name) { return name.empty() ? nullptr : name.c_str(); }

tutti_comm_options forced_by(const Options& options) {
  tutti_comm_options forced = TUTTI_COMM_OPTIONS_DEFAULT;
  forced.algorithm = unless_empty(options.algorithm);
  forced.protocol = unless_empty(options.protocol);
  forced.transport = unless_empty(options.transport);
  forced.wire = unless_empty(options.wire);
  forced.channels = options.channels;
  return forced;
}

Ranks on_host(const Collective& collective, const Options& options, tutti_comm threads) {
  const tutti_comm_options forced = forced_by(options);
  tutti_comm view = nullptr;
  require(tutti_comm_with_options(threads, &forced, &view), "forcing the choice");
  Ranks ranks;
  ranks.push_back(std::make_unique<Rank>(collective, host_site(options.memory), view));
  return ranks;
}

}  // namespace

Ranks make_ranks(const Collective& collective, const Options& options, tutti_comm threads) {
  return on_host(collective, options, threads);
}

void end_ranks(Ranks& ranks, tutti_comm threads) {
  for (const auto& rank : ranks) rank->free();
  ranks.clear();
  require(tutti_comm_destroy(threads), "tutti_comm_destroy");
}

}  // namespace perf
