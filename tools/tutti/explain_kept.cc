#include "tools/tutti/explain_kept.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "src/base/config.h"
#include "src/communicator/autotuning/machine_name.h"
#include "src/tuner/autotuner.h"

namespace tutti::tool {
namespace {

struct Classes {
  const TunedClass *lanes = nullptr, *mapped = nullptr;
};

struct SavedChoice {
  const TunedClass* from = nullptr;
  std::optional<Choice> choice;
};

std::string hosts_of(const Query& query) {
  if (!query.problem.groups.empty()) return hosts_in_words(query.problem.groups.front());
  const Rank ranks = query.problem.ranks;
  return hosts_in_words(query.network ? std::vector<Rank>(ranks, 1) : std::vector<Rank>{ranks});
}

bool skip(std::string_view& words, std::string_view word) {
  const bool is_next = words.starts_with(word);
  if (is_next) words.remove_prefix(word.size());
  return is_next;
}

// Reads "2 ranks" or "1 rank" and removes it from the text. 0: the text does not begin so.
std::uint32_t take_count(std::string_view& words, std::string_view one) {
  std::uint32_t count = 0;
  const auto [end, error] = std::from_chars(words.data(), words.data() + words.size(), count);
  if (error != std::errc()) return 0;
  words.remove_prefix(static_cast<std::size_t>(end - words.data()));
  if (!skip(words, " ") || !skip(words, one)) return 0;
  skip(words, "s");
  return count;
}

// Cores that `ranks` ranks have in total, from a machine's description of sharing. 0: unknown, such as for ranks of
// several kinds.
std::uint32_t cores_of(std::string_view sharing, Rank ranks) {
  const std::uint32_t sharers = take_count(sharing, "rank");
  skip(sharing, " in a process");  // Threads.
  if (sharers == 0 || !skip(sharing, " on ")) return 0;
  const std::uint32_t cores = take_count(sharing, "CPU");
  return sharing.starts_with(" of ") ? (ranks + sharers - 1) / sharers * cores : 0;
}

bool is_of(const std::string& name, const RequestedMachine& requested, const Query& query) {
  if (name.find(requested.named) == std::string::npos) return false;
  const std::optional<NamedMachine> machine = parse_machine_name(name);
  if (!machine || machine->on_devices != (query.thread_blocks > 0)) return false;
  if (machine->on_devices) {
    const bool linked = !requested.named.empty() || requested.links.empty() || machine->links == requested.links;
    return machine->ranks == query.problem.ranks && linked;
  }
  if (requested.cores > 0 && cores_of(machine->sharing, query.problem.ranks) != requested.cores) return false;
  return machine->hosts == hosts_of(query) && (machine->transport != "shm") == query.network;
}

Classes classes_of(const TuneCache::Machine& machine, const Query& query) {
  Classes found;
  TunedClass wanted;
  wanted.collective = query.problem.collective;
  wanted.size_class = size_class(query.block_bytes);
  for (const TunedClass& tuned : machine.classes) {
    wanted.mapped = tuned.mapped;
    if (tuned.same_calls(wanted)) (tuned.mapped ? found.mapped : found.lanes) = &tuned;
  }
  return found;
}

// Whether communicators autotune such calls: not if a choice is forced or a plugin makes it.
bool is_tunable(const Query& query) {
  const Config& from = config();
  return query.problem.ranks > 1 && query.algorithm.empty() && query.protocol.empty() && from.algorithm.empty() &&
         from.protocol.empty() && !from.has_plugin();
}

// The saved choice; empty if it is not among the candidates.
SavedChoice saved_choice_of(const TunedClass* tuned, const std::vector<Candidate>& candidates) {
  if (tuned == nullptr) return {};
  const TunedCandidate& first = tuned->candidates.front();
  for (const Candidate& candidate : candidates) {
    if (candidate.choice.algorithm == first.algorithm && candidate.choice.protocol == first.protocol)
      return {tuned, candidate.choice};
  }
  return {};
}

bool tries_mapped(const Query& query, const std::vector<Candidate>& candidates) {
  std::vector<double> predicted_us;
  for (const Candidate& candidate : candidates) predicted_us.push_back(candidate.predicted_us);
  const bool oversubscribed = query.machine != nullptr && query.machine->ranks_per_core > 1;
  const Autotuner autotuner(predicted_us, autotuner_options(has_root(query.problem.collective), oversubscribed));
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].choice.mapped && autotuner.tries(i)) return true;
  }
  return false;
}

// On GPUs, calls on symmetric windows have results of their own.
SavedChoice saved_choice_of_devices(const Classes& classes, const Query& query, std::vector<Candidate> all) {
  std::erase_if(all,
                [](const Candidate& candidate) { return candidate.choice.compression != CompressionFormat::none; });
  return saved_choice_of(query.mapped ? classes.mapped : classes.lanes, all);
}

// The rule of src/communicator/autotuning/host_autotuning.cc: if a mapped algorithm lost, all calls use lanes, by the
// result saved for lanes or, without one, by the result that won over the mapped algorithm.
Result<SavedChoice> saved_choice_of(const Classes& classes, const Query& query) {
  if (!is_tunable(query)) return SavedChoice{};
  Query requested = query;
  if (query.thread_blocks == 0) requested.mapped = false;
  const std::vector<Candidate> predicted = TUTTI_TRY(candidates(requested));
  // Compressed calls are not autotuned.
  if (predicted.empty() || predicted.front().choice.compression != CompressionFormat::none) return SavedChoice{};
  if (query.thread_blocks > 0) return saved_choice_of_devices(classes, query, predicted);
  requested.mapped = !query.network;
  std::vector<Candidate> all = TUTTI_TRY(candidates(requested));
  std::erase_if(all,
                [](const Candidate& candidate) { return candidate.choice.compression != CompressionFormat::none; });
  std::vector<Candidate> through_lanes = all;
  std::erase_if(through_lanes, [](const Candidate& candidate) { return candidate.choice.mapped; });
  SavedChoice lanes = saved_choice_of(classes.lanes, through_lanes);
  SavedChoice mapped = saved_choice_of(classes.mapped, all);
  if (!lanes.choice && mapped.choice && !mapped.choice->mapped) lanes = mapped;
  if (!query.mapped || (mapped.choice && !mapped.choice->mapped)) return lanes;
  return mapped.choice || tries_mapped(query, all) ? mapped : lanes;
}

// Fails if the name of no machine contains the requested text.
Status check_named(const RequestedMachine& requested, const TuneCache& cache) {
  std::string names;
  for (const TuneCache::Machine& machine : cache.machines) {
    if (machine.name.find(requested.named) != std::string::npos) return {};
    names.append(names.empty() ? "" : "; ").append(machine.name);
  }
  return invalid_argument("--machine: no machine in " + requested.file + " has \"" + requested.named +
                          "\" in its name; the file has " + (names.empty() ? "no machines" : names));
}

}  // namespace

double Measured::us(const Choice& choice) const {
  if (choice.compression != CompressionFormat::none) return 0;
  for (const TunedCandidate& one : tuned.candidates)
    if (one.algorithm == choice.algorithm && one.protocol == choice.protocol) return one.measured_us;
  return 0;
}

Result<Measured> read_measured(const RequestedMachine& requested, const Query& query) {
  Measured latest;
  if (requested.file.empty()) return latest;
  const TuneCache cache = TUTTI_TRY(read_tune_cache(requested.file));
  if (!requested.named.empty()) TUTTI_CHECK_OK(check_named(requested, cache));
  for (const TuneCache::Machine& machine : cache.machines) {
    if (!is_of(machine.name, requested, query)) continue;
    const Classes classes = classes_of(machine, query);
    const SavedChoice kept = TUTTI_TRY(saved_choice_of(classes, query));
    const TunedClass* shown = kept.choice ? kept.from : query.mapped ? classes.mapped : classes.lanes;
    if (shown == nullptr) continue;
    if (!latest.machine.empty()) latest.others.push_back(latest.machine);
    latest.machine = machine.name;
    latest.tuned = *shown;
    latest.kept = kept.choice;
  }
  return latest;
}

}  // namespace tutti::tool
