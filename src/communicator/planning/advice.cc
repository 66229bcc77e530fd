#include "src/communicator/planning/advice.h"

#include <algorithm>
#include <vector>

#include "src/communicator/planning/planning.h"

namespace tutti {
namespace {

AdvisedRanks advised(const Hosts& hosts) {
  std::vector<std::size_t> members(hosts.ranks(), 0);  // By leader.
  for (const Rank leader : hosts.leaders()) ++members[leader];
  members.erase(std::remove(members.begin(), members.end(), 0), members.end());
  const auto [fewest, most] = std::minmax_element(members.begin(), members.end());
  return {.communicator = hosts.id(),
          .ranks = hosts.ranks(),
          .hosts = members.size(),
          .fewest_per_host = *fewest,
          .max_per_host = *most};
}

}  // namespace

Advice::Advice(const std::string& plugin, const Hosts& hosts) {
  if (hosts.ranks() > 1) adviser_ = TunerAdviser::make(TunerPlugin::of_process(plugin), advised(hosts));
}

Result<bool> Advice::apply(const Query& query, Choice& choice, CallRecord& record) {
  if (adviser_ == nullptr || !query.algorithm.empty()) return false;
  std::vector<Candidate> all = TUTTI_TRY(candidates(query));
  // Plugins choose algorithm and protocol. The compression format stays as chosen by the library.
  std::erase_if(all, [&](const Candidate& candidate) { return candidate.choice.compression != choice.compression; });
  const Question question = {.collective = query.problem.collective,
                             .ranks = query.problem.ranks,
                             .block_bytes = query.block_bytes,
                             .registered = query.mapped,
                             .thread_blocks = query.thread_blocks};
  const PluginChoice advised = adviser_->ask(question, all);
  if (advised.silent()) return false;
  if (advised.candidate) choice = all[*advised.candidate].choice;
  if (advised.channels != 0) choice.channels = advised.channels;
  record.signature = mix(record.signature + 0x9e3779b97f4a7c15ULL * hash(advised, all));
  record.advised = 1;
  return true;
}

}  // namespace tutti
