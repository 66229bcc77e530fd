#include "tools/tutti/explain_report.h"

#include <algorithm>
#include <cstdio>

#include "algorithms/catalogue.h"
#include "src/base/json.h"
#include "src/tuner/autotuner.h"
#include "src/tuner/coding.h"

namespace tutti::tool {
namespace {

std::string named(const Choice& choice) {
  return std::string(choice.algorithm) + " with " + name(choice.protocol) +
         (choice.compression == CompressionFormat::none ? "" : " in " + std::string(name(choice.compression)));
}

// The part in which the winner gains most.
std::string reason(const Candidate& winner, const Candidate& other) {
  const struct {
    const char* what;
    double mine, theirs;
  } parts[] = {{"to begin", winner.parts.launch_us, other.parts.launch_us},
               {"waiting for messages", winner.parts.hops_us, other.parts.hops_us},
               {"on the busiest link", winner.parts.links_us, other.parts.links_us},
               {"of work by the busiest rank", winner.parts.work_us, other.parts.work_us}};
  const auto* best = std::max_element(std::begin(parts), std::end(parts), [](const auto& a, const auto& b) {
    return a.theirs - a.mine < b.theirs - b.mine;
  });
  char text[160];
  std::snprintf(text, sizeof text, "%.4g us %s, where %s takes %.4g", best->mine, best->what,
                named(other.choice).c_str(), best->theirs);
  return text;
}

// Whether anything may be rounded.
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

// Under a bound, of formats what raw messages would allow.
std::vector<RuledOut> all_ruled_out(const Query& query) {
  std::vector<RuledOut> all;
  Query asked = query;
  for (const Algorithm* algorithm : query.catalogue) {
    for (const Protocol protocol : {Protocol::ll, Protocol::simple, Protocol::ll128}) {
      for (const CompressionFormat compression : formats_of(query)) {
        asked.compression = compression;
        const std::string why = ruled_out(asked, *algorithm, protocol);
        if (!why.empty()) all.push_back({algorithm, protocol, compression, why});
        if (!why.empty() && compression == CompressionFormat::none) break;
      }
    }
  }
  return all;
}

std::string prediction(const Query& query, const std::vector<Candidate>& found) {
  if (found.empty()) return "nothing that is asked for is possible";
  const std::string winner = named(found.front().choice);
  if (found.size() == 1) return winner + " is chosen: nothing else is possible";
  if (query.thread_blocks > 0) {
    const auto* best = &found.front();
    for (const Candidate& other : found)
      if (other.predicted_us < best->predicted_us) best = &other;
    return winner + " is chosen, from a table of estimates, made without a device" +
           (best == &found.front() ? "" : "; by prediction " + named(best->choice) + " takes less");
  }
  if (found[1].predicted_us < found[0].predicted_us)
    return winner + " is chosen: by " + named(found[1].choice) + " less than a tenth would be gained";
  if (found[1].predicted_us == found[0].predicted_us) return winner + " is chosen, the first of equals";
  return winner + " is chosen: it takes " + reason(found[0], found[1]);
}

std::string rounded(double us) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", us);
  return text;
}

// Why what is kept need not have taken the least time.
std::string what_replaces() {
  const AutotunerOptions terms;
  return "only what is " + rounded(100 * (1 - terms.better)) + " % better in all, and better in " +
         rounded(100 * terms.oftener) + " % of the rounds, replaces the first choice";
}

// With trials what is kept of those before, without what is predicted.
std::string result(const Query& query, const std::vector<Candidate>& found, const Measured& measured) {
  const std::string predicted = prediction(query, found);
  if (!measured.kept) return predicted;
  const std::string kept = named(*measured.kept);
  const double us = measured.us(*measured.kept);
  std::string times = us > 0 ? "kept: measured " + rounded(us) + " us" : "kept, with no time";
  bool quickest = true;
  for (const Candidate& other : found) {
    const double takes = measured.us(other.choice);
    if (takes > 0 && named(other.choice) != kept) times += ", " + named(other.choice) + " " + rounded(takes);
    if (takes > 0 && takes < us) quickest = false;
  }
  if (!quickest) times += " (" + what_replaces() + ")";
  if (kept == named(found.front().choice)) return predicted + "; with TUTTI_TUNE=1 it is " + times;
  return "With TUTTI_TUNE=1 " + kept + " is chosen, " + times + "; without, " + predicted;
}

// Of the larger of a rank's buffers; of many ranks more than an integer holds.
double bytes_of_nccl_tests(const Query& query) {
  const Problem& problem = query.problem;
  return static_cast<double>(query.block_bytes) *
         std::max(input_blocks(problem, problem.root), output_blocks(problem, problem.root));
}

std::string describe_cores(const ExplainedTerms& terms) {
  if (terms.cores == 0) return "each with a core of its own";
  const std::string which = terms.of_this_host ? "the " : "";
  const std::string count = terms.cores == 1 ? "one core" : std::to_string(terms.cores) + " cores";
  return "all on " + which + count + (terms.of_this_host ? " of this machine" : "");
}

void print_heading(const Query& query, const ExplainedTerms& terms) {
  const auto block = static_cast<double>(query.block_bytes), whole = bytes_of_nccl_tests(query);
  std::printf("%s, blocks of %.0f bytes", describe(query.problem).c_str(), block);
  if (whole > block) std::printf(" (%.0f as nccl-tests and tutti simulate count)", whole);
  const bool on_devices = query.thread_blocks > 0;
  std::printf(", %s%s%s%s\n", on_devices ? "on devices" : "on host memory",
              query.network  ? ", between hosts"
              : query.mapped ? " that all can map"
                             : "",
              on_devices ? "" : ", ", on_devices ? "" : describe_cores(terms).c_str());
}

}  // namespace

void print_text(const Query& query, const std::vector<Candidate>& found, const Measured& measured,
                const ExplainedTerms& terms) {
  print_heading(query, terms);
  if (!terms.environment.empty()) std::printf("%s\n", terms.environment.c_str());
  std::printf("%-20s %-8s %10s %10s %10s %10s %10s %10s   (us)%s\n", "algorithm", "protocol", "predicted", "launch",
              "hops", "links", "work", "measured", rounds(query) ? " messages   error" : "");
  for (const Candidate& candidate : found) {
    const Prediction& parts = candidate.parts;
    const double us = measured.us(candidate.choice);
    const std::string text = us > 0 ? rounded(us) : "-";
    std::printf("%-20s %-8s %10.4g %10.4g %10.4g %10.4g %10.4g %10s", std::string(candidate.choice.algorithm).c_str(),
                name(candidate.choice.protocol), candidate.predicted_us, parts.launch_us, parts.hops_us, parts.links_us,
                parts.work_us, text.c_str());
    if (rounds(query))
      std::printf("        %-8s %7.2g", name(candidate.choice.compression), error_of(query, candidate.choice));
    std::printf("\n");
  }
  const bool shown = std::any_of(found.begin(), found.end(),
                                 [&](const Candidate& candidate) { return measured.us(candidate.choice) > 0; });
  if (shown) std::printf("measured on %s\n", measured.machine.c_str());
  else if (!measured.named_file.empty() && !measured.kept)
    std::printf("%s has %s\n", measured.named_file.c_str(),
                !measured.machine.empty() ? "such calls, but as none of these"
                : query.thread_blocks > 0 ? "nothing of such calls on such devices"
                                          : "nothing of such calls on such hosts");
  for (const std::string& other : measured.others)
    std::printf("measured as well on %s: see --machine\n", other.c_str());
  std::printf("%s.\n", result(query, found, measured).c_str());
  std::printf("left out:\n");
  const std::vector<RuledOut> all = all_ruled_out(query);
  for (auto one = all.begin(); one != all.end();) {
    const auto next = std::find_if(one, all.end(), [&](const RuledOut& other) {
      return other.algorithm != one->algorithm || other.protocol != one->protocol || other.why != one->why;
    });
    std::string formats;  // For the same reason.
    for (auto each = one; each != next; ++each)
      formats += (formats.empty() ? "in " : ", ") + std::string(name(each->compression));
    const bool all_alike = one->compression == query.compression || !rounds(query);
    std::printf("  %-20s %-8s %s%s%s\n", one->algorithm->name(), name(one->protocol), all_alike ? "" : formats.c_str(),
                all_alike ? "" : ": ", one->why.c_str());
    one = next;
  }
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

}  // namespace

void print_json(const Query& query, const std::vector<Candidate>& found, const Measured& measured,
                const ExplainedTerms& terms) {
  std::printf(
      "{\"collective\": \"%s\", \"ranks\": %u, \"bytes\": %llu, \"nccl_tests_bytes\": %.0f, \"cores\": %s, "
      "\"environment\": %s, \"candidates\": [",
      name(query.problem.collective), query.problem.ranks, static_cast<unsigned long long>(query.block_bytes),
      bytes_of_nccl_tests(query), terms.cores == 0 ? "null" : std::to_string(terms.cores).c_str(),
      json_quoted(terms.environment).c_str());
  const char* comma = "";
  for (const Candidate& candidate : found) {
    const Choice& choice = candidate.choice;
    std::printf(
        "%s\n{\"algorithm\": \"%s\", \"protocol\": \"%s\", \"wire\": \"%s\", \"chunk_bytes\": %llu, \"predicted_us\": "
        "%g, "
        "\"launch_us\": %g, \"hops_us\": %g, \"links_us\": %g, \"work_us\": %g, \"measured_us\": ",
        comma, std::string(choice.algorithm).c_str(), name(choice.protocol), name(choice.compression),
        static_cast<unsigned long long>(choice.chunk_bytes), candidate.predicted_us, candidate.parts.launch_us,
        candidate.parts.hops_us, candidate.parts.links_us, candidate.parts.work_us);
    const double us = measured.us(choice);
    if (us > 0) std::printf("%g, ", us);
    else std::printf("null, ");
    std::printf("\"expected_error\": %g, ", error_of(query, choice));
    print_levels(find(query.problem.collective, choice.algorithm)->cost_law(query.problem));
    std::printf("}");
    comma = ",";
  }
  std::printf("],\n\"measured_on\": %s,\n\"measured_as_well_on\": [",
              measured.machine.empty() ? "null" : json_quoted(measured.machine).c_str());
  comma = "";
  for (const std::string& other : measured.others) {
    std::printf("%s%s", comma, json_quoted(other).c_str());
    comma = ", ";
  }
  std::printf("],\n\"verdict\": %s,\n\"ruled_out\": [", json_quoted(result(query, found, measured)).c_str());
  comma = "";
  const std::vector<RuledOut> others = all_ruled_out(query);
  for (const RuledOut& one : others) {
    std::printf("%s\n{\"algorithm\": \"%s\", \"protocol\": \"%s\", \"wire\": \"%s\", \"why\": \"%s\"}", comma,
                one.algorithm->name(), name(one.protocol), name(one.compression), one.why.c_str());
    comma = ",";
  }
  std::printf("]}\n");
}

}  // namespace tutti::tool
