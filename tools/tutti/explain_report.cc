#include "tools/tutti/explain_report.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <utility>

#include "algorithms/catalogue.h"
#include "src/base/json.h"
#include "src/tuner/autotuner.h"
#include "src/tuner/choose.h"
#include "src/tuner/choose_over_hosts.h"
#include "src/tuner/coding.h"
#include "tools/tutti/call_model.h"
#include "tools/tutti/help.h"

namespace tutti::tool {
namespace {

// "ring/Simple", "ring/Simple/int8".
std::string named(const Choice& choice) {
  return std::string(choice.algorithm) + "/" + name(choice.protocol) +
         (choice.compression == CompressionFormat::none ? "" : "/" + std::string(name(choice.compression)));
}

// Decimals for all times of a table: 3 if they are below 10 us, else 2, or 1 from 10 ms on.
class Times {
 public:
  explicit Times(const std::vector<Candidate>& candidates) {
    double max_us = 0;
    for (const Candidate& candidate : candidates) max_us = std::max(max_us, candidate.predicted_us);
    decimals_ = max_us < 10 ? 3 : max_us < 10'000 ? 2 : 1;
  }
  std::string operator()(double us) const {
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", decimals_, us);
    return text;
  }

 private:
  int decimals_ = 2;
};

// The part of the prediction in which the chosen candidate gains most over the other.
std::string reason(const Times& shown, const Candidate& chosen, const Candidate& other) {
  const struct {
    const char* part;
    double mine, theirs;
  } parts[] = {{"launch", chosen.parts.launch_us, other.parts.launch_us},
               {"hops", chosen.parts.hops_us, other.parts.hops_us},
               {"links", chosen.parts.links_us, other.parts.links_us},
               {"work", chosen.parts.work_us, other.parts.work_us}};
  const auto* best = std::max_element(std::begin(parts), std::end(parts), [](const auto& a, const auto& b) {
    return a.theirs - a.mine < b.theirs - b.mine;
  });
  return "fastest; second: " + named(other.choice) + ", " + shown(other.predicted_us) + " us, mainly because of " +
         best->part + ": " + shown(best->theirs) + " instead of " + shown(best->mine) + " us";
}

// Whether messages may be compressed.
bool rounds(const Query& query) { return query.compression != CompressionFormat::none || query.max_relative_error > 0; }

double error_of(const Query& query, const Choice& choice) {
  return expected_error(choice.compression, find(query.problem.collective, choice.algorithm)->cost_law(query.problem));
}

struct RuledOut {
  const Algorithm* algorithm;
  Protocol protocol;
  CompressionFormat compression;
  std::string why;
};

// Excluded combinations. Compression formats are listed only for combinations that are possible without compression.
std::vector<RuledOut> all_ruled_out(const Query& query) {
  std::vector<RuledOut> all;
  Query requested = query;
  for (const Algorithm* algorithm : query.catalogue) {
    for (const Protocol protocol : {Protocol::ll, Protocol::simple, Protocol::ll128}) {
      for (const CompressionFormat compression : formats_of(query)) {
        requested.compression = compression;
        const std::string why = ruled_out(requested, *algorithm, protocol);
        if (!why.empty()) all.push_back({algorithm, protocol, compression, why});
        if (!why.empty() && compression == CompressionFormat::none) break;
      }
    }
  }
  return all;
}

// "ring/Simple (the only candidate)": the choice without autotuning.
std::string prediction(const Query& query, const std::vector<Candidate>& found) {
  const Times shown(found);
  const std::string chosen = named(found.front().choice);
  if (found.size() == 1) return chosen + " (the only candidate)";
  if (query.thread_blocks > 0) return chosen + " (from a table of estimates for GPUs, not measured)";
  if (found[1].predicted_us < found[0].predicted_us)
    return chosen + " (" + named(found[1].choice) + " is less than 10 % faster, below the switching threshold)";
  if (found[1].predicted_us == found[0].predicted_us)
    return chosen + " (as fast as " + named(found[1].choice) + ", and listed first in the catalogue)";
  return chosen + " (" + reason(shown, found[0], found[1]) + ")";
}

// A sentence if the table for GPUs chooses a candidate that is not predicted to be the fastest; else "".
std::string faster_candidate(const Query& query, const std::vector<Candidate>& found) {
  const Candidate& chosen = found.front();
  const Candidate* fastest = &chosen;
  for (const Candidate& other : found)
    if (other.predicted_us > 0 && other.predicted_us < fastest->predicted_us) fastest = &other;
  if (query.thread_blocks == 0 || fastest == &chosen) return "";
  const Times shown(found);
  return "The choice is not the fastest by these predictions: " + named(fastest->choice) + " takes " +
         shown(fastest->predicted_us) + " us, " + named(chosen.choice) + " " + shown(chosen.predicted_us) + " us.";
}

std::string rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

// Condition under which autotuning leaves its first choice.
std::string switching_rule() {
  const AutotunerOptions terms;
  return "the first choice is replaced only by one that is " + rounded(100 * (1 - terms.min_improvement)) +
         " % faster in total and faster in " + rounded(100 * terms.min_win_share) + " % of the rounds";
}

// "measured 1.50 us; two_shot/Simple 9.50 us": times of the saved choice and of the others.
std::string measured_times(const std::vector<Candidate>& found, const Measured& measured) {
  const Times shown(found);
  const std::string kept = named(*measured.kept);
  const double us = measured.us(*measured.kept);
  std::string times = us > 0 ? "measured " + shown(us) + " us" : "not measured";
  bool fastest = true;
  for (const Candidate& other : found) {
    const double takes = measured.us(other.choice);
    if (takes > 0 && named(other.choice) != kept) times += "; " + named(other.choice) + " " + shown(takes) + " us";
    if (takes > 0 && takes < us) fastest = false;
  }
  return fastest ? times : times + "; " + switching_rule();
}

// The choice and its reason; with autotuning, the saved result if there is one.
std::string result(const Query& query, const std::vector<Candidate>& found, const Measured& measured) {
  if (found.empty() && !rejection(query).empty()) return rejection(query);
  if (found.empty()) return "no algorithm satisfies these options";
  const std::string predicted = "chosen: " + prediction(query, found);
  std::string faster = faster_candidate(query, found);
  if (!faster.empty()) faster.insert(0, "\n");
  if (!measured.kept) return predicted + faster;
  const std::string kept = named(*measured.kept);
  const std::string times = measured_times(found, measured);
  if (kept == named(found.front().choice))
    return predicted + faster + "\nchosen with TUTTI_TUNE=1: the same (" + times + ")";
  return "chosen with TUTTI_TUNE=1: " + kept + " (" + times + ")\n" + predicted + ", without TUTTI_TUNE" + faster;
}

std::string describe_cores(const ExplainedTerms& terms) {
  if (terms.cores == 0) return "one core per rank";
  return (terms.cores == 1 ? "1 core" : std::to_string(terms.cores) + " cores") +
         (terms.of_this_host ? " (this machine)" : "") + " shared by all ranks";
}

void print_heading(const Query& query, const ExplainedTerms& terms) {
  const auto block = static_cast<double>(query.block_bytes), whole = whole_bytes(query);
  std::printf("%s, blocks of %.0f bytes", describe(query.problem).c_str(), block);
  if (whole > block) std::printf(" (%.0f as nccl-tests and tutti simulate count)", whole);
  const bool on_devices = query.thread_blocks > 0;
  std::printf(", %s%s%s%s\n", on_devices ? "GPUs" : "host memory",
              query.network  ? ", between hosts"
              : query.mapped ? " accessible to all ranks"
                             : "",
              on_devices ? "" : ", ", on_devices ? "" : describe_cores(terms).c_str());
}

// Explains the columns of times.
const char* legend(const ExplainedTerms& terms) {
  if (terms.simulated)
    return "Times in us of calls outside CUDA graphs, simulated as by tutti simulate --launch eager (ranges of sizes "
           "and --compare: --launch graph); predicted = launch + hops + links + work, the parts of the critical path. "
           "launch: start of a call; hops: latency, and waits for free slots; links: transfers and queues; work: "
           "channels of a rank (copies, reductions, messages).";
  return "Times in us; predicted = launch + hops + the larger of links and work. launch: start of a call; hops: "
         "messages that wait for each other; links: busiest link; work: busiest rank (copies, reductions, messages).";
}

// The predicted time and its parts, or dashes for a candidate that was not simulated.
void print_times(const Candidate& candidate, const Times& shown) {
  const Prediction& parts = candidate.parts;
  for (const double us : {candidate.predicted_us, parts.launch_us, parts.hops_us, parts.links_us, parts.work_us})
    std::printf(" %10s", candidate.predicted_us > 0 ? shown(us).c_str() : "-");
}

void print_table(const Query& query, const std::vector<Candidate>& found, const Measured& measured,
                 const ExplainedTerms& terms) {
  const Times shown(found);
  const bool has_times = std::any_of(found.begin(), found.end(),
                                     [&](const Candidate& candidate) { return measured.us(candidate.choice) > 0; });
  std::printf("%-20s %-8s %10s %10s %10s %10s %10s%s%s\n", "algorithm", "protocol", "predicted", "launch", "hops",
              "links", "work", has_times ? "   measured" : "", rounds(query) ? "  messages   error" : "");
  for (const Candidate& candidate : found) {
    std::printf("%-20s %-8s", std::string(candidate.choice.algorithm).c_str(), name(candidate.choice.protocol));
    print_times(candidate, shown);
    const double us = measured.us(candidate.choice);
    if (has_times) std::printf(" %10s", us > 0 ? shown(us).c_str() : "-");
    if (rounds(query))
      std::printf("  %-8s %7.2g", name(candidate.choice.compression), error_of(query, candidate.choice));
    std::printf("\n");
  }
  std::printf("%s", wrapped(legend(terms), 0, 0).c_str());
  for (const std::string& note : terms.notes) std::printf("%s", wrapped(note, 0, 0).c_str());
  if (has_times) std::printf("measured on %s\n", measured.machine.c_str());
  else if (!measured.named_file.empty() && !measured.kept)
    std::printf("%s has no times for %s\n", measured.named_file.c_str(),
                !measured.machine.empty() ? "these candidates"
                : query.thread_blocks > 0 ? "these calls on these GPUs"
                                          : "these calls on these hosts");
  for (const std::string& other : measured.others)
    std::printf("also measured on %s (--machine selects it)\n", other.c_str());
}

// Names what a reason excludes of one algorithm: "ring/LL", "ring" if it excludes all protocols, or, with
// compression, "ring/Simple (int6, int4)".
std::string excluded_name(const Query& query, const std::vector<RuledOut>& alike) {
  std::vector<Protocol> protocols;
  std::string formats;
  for (const RuledOut& one : alike) {
    if (std::find(protocols.begin(), protocols.end(), one.protocol) == protocols.end())
      protocols.push_back(one.protocol);
    if (one.compression != query.compression)
      formats += (formats.empty() ? "" : ", ") + std::string(name(one.compression));
  }
  std::string text = alike.front().algorithm->name();
  if (protocols.size() < std::size(kProtocols))
    for (const Protocol protocol : protocols) text += std::string("/") + name(protocol);
  return formats.empty() ? text : text + " (" + formats + ")";
}

// A line per reason, with the names of what it excludes.
void print_excluded(const Query& query) {
  constexpr std::size_t kIndent = 4;
  std::vector<std::string> reasons;
  std::map<std::pair<std::string, const Algorithm*>, std::vector<RuledOut>> excluded;
  for (const RuledOut& one : all_ruled_out(query)) {
    if (std::find(reasons.begin(), reasons.end(), one.why) == reasons.end()) reasons.push_back(one.why);
    excluded[{one.why, one.algorithm}].push_back(one);
  }
  std::printf(reasons.empty() ? "excluded: none\n" : "excluded:\n");
  for (const std::string& why : reasons) {
    std::string line = why;
    for (const Algorithm* algorithm : query.catalogue) {
      const auto found = excluded.find({why, algorithm});
      if (found == excluded.end()) continue;
      line += (line == why ? ": " : ", ") + excluded_name(query, found->second);
    }
    std::printf("  %s", wrapped(line, kIndent, 2).c_str());
  }
}

}  // namespace

std::string rejection(const Query& query) {
  const std::string simple = name(Protocol::simple);
  if (!query.network || query.protocol.empty() || query.protocol == simple) return {};
  const bool compressed = query.compression != CompressionFormat::none;
  const std::string why = query.protocol == name(Protocol::ll128) ? "lanes between hosts have no LL128"
                          : compressed                            ? "compressed messages on GPUs use " + simple
                          : query.remote_ll_channels > 0          ? std::string(kLlBetweenHosts)
                                                                  : "lanes between hosts have no LL without GPUDirect";
  return "Tutti rejects such calls: " + why + ", but " + std::string(query.protocol) +
         " is forced (--protocol, TUTTI_PROTOCOL); use " + simple + ", or omit it";
}

void print_text(const Query& query, const std::vector<Candidate>& found, const Measured& measured,
                const ExplainedTerms& terms) {
  print_heading(query, terms);
  if (!terms.environment.empty()) std::printf("%s\n", terms.environment.c_str());
  std::printf("%s\n\n", result(query, found, measured).c_str());
  if (!found.empty()) print_table(query, found, measured, terms);
  print_excluded(query);
}

namespace {

void print_levels(const CostLaw& cost_law) {
  std::printf("\"levels\": [");
  for (std::size_t i = 0; i < CostLaw::kLevels; ++i) {
    const Traffic& level = cost_law.levels[i];
    std::printf(
        "%s{\"depth\": %g, \"chain\": %g, \"stalls\": %g, \"sent\": %g, \"received\": %g, \"messages\": %g, "
        "\"between\": %g}",
        i == 0 ? "" : ", ", level.depth, level.chain, level.stalls, level.sent, level.received, level.messages,
        level.between);
  }
  std::printf("], \"folded\": %g, \"copied\": %g, \"longest\": %g", cost_law.folded, cost_law.copied, cost_law.longest);
}

// Prints null for a candidate that was not simulated.
void print_parts(const Candidate& candidate) {
  if (candidate.predicted_us > 0)
    std::printf("\"predicted_us\": %.6g, \"launch_us\": %g, \"hops_us\": %g, \"links_us\": %g, \"work_us\": %g, ",
                candidate.predicted_us, candidate.parts.launch_us, candidate.parts.hops_us, candidate.parts.links_us,
                candidate.parts.work_us);
  else std::printf("\"predicted_us\": null, ");
}

}  // namespace

void print_json(const Query& query, const std::vector<Candidate>& found, const Measured& measured,
                const ExplainedTerms& terms) {
  std::printf(
      "{\"collective\": \"%s\", \"ranks\": %u, \"bytes\": %llu, \"nccl_tests_bytes\": %.0f, \"cores\": %s, "
      "\"environment\": %s, \"launch\": %s, \"notes\": [",
      name(query.problem.collective), query.problem.ranks, static_cast<unsigned long long>(query.block_bytes),
      whole_bytes(query), terms.cores == 0 ? "null" : std::to_string(terms.cores).c_str(),
      json_quoted(terms.environment).c_str(),
      terms.simulated ? json_quoted(simulator::name(simulator::LaunchMode::eager)).c_str() : "null");
  const char* comma = "";
  for (const std::string& note : terms.notes) {
    std::printf("%s%s", comma, json_quoted(note).c_str());
    comma = ", ";
  }
  std::printf("], \"candidates\": [");
  comma = "";
  for (const Candidate& candidate : found) {
    const Choice& choice = candidate.choice;
    std::printf("%s\n{\"algorithm\": \"%s\", \"protocol\": \"%s\", \"compression\": \"%s\", \"chunk_bytes\": %llu, ",
                comma, std::string(choice.algorithm).c_str(), name(choice.protocol), name(choice.compression),
                static_cast<unsigned long long>(choice.chunk_bytes));
    print_parts(candidate);
    const double us = measured.us(choice);
    std::printf("\"measured_us\": ");
    if (us > 0) std::printf("%g, ", us);
    else std::printf("null, ");
    std::printf("\"expected_error\": %g, ", error_of(query, choice));
    print_levels(find(query.problem.collective, choice.algorithm)->cost_law(query.problem));
    std::printf("}");
    comma = ",";
  }
  std::printf("],\n\"measured_on\": %s,\n\"also_measured_on\": [",
              measured.machine.empty() ? "null" : json_quoted(measured.machine).c_str());
  comma = "";
  for (const std::string& other : measured.others) {
    std::printf("%s%s", comma, json_quoted(other).c_str());
    comma = ", ";
  }
  std::string chosen = result(query, found, measured);
  std::replace(chosen.begin(), chosen.end(), '\n', ';');
  std::printf("],\n\"reason\": %s,\n\"excluded\": [", json_quoted(chosen).c_str());
  comma = "";
  const std::vector<RuledOut> others = all_ruled_out(query);
  for (const RuledOut& one : others) {
    std::printf("%s\n{\"algorithm\": \"%s\", \"protocol\": \"%s\", \"compression\": \"%s\", \"why\": \"%s\"}", comma,
                one.algorithm->name(), name(one.protocol), name(one.compression), one.why.c_str());
    comma = ",";
  }
  std::printf("]}\n");
}

}  // namespace tutti::tool
