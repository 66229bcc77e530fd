#include "tools/tutti/estimate_report.h"

#include <cstdio>

#include "src/base/json.h"
#include "tools/tutti/help.h"
#include "tools/tutti/quantities.h"

namespace tutti::tool {
namespace {

std::string percent(double part) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * part);
  return text;
}

std::string conclusion_of(const Estimate& estimate) {
  const StepTimes& now = estimate.times;
  const TrainingChange& best = estimate.changes.front();
  const double saved = saved_by(best, now);
  if (saved < kWorthChanging)
    return "No single change saves 1 % of the step: " + percent(now.hidden_us / now.communication_us) +
           " of the communication is hidden.";
  return best.option + " helps most: the same computation takes " + percent(saved) + " less time.";
}

void print_line(const char* title, const std::string& value, const std::string& note = {}) {
  std::printf("%-22s %9s%s%s\n", title, value.c_str(), note.empty() ? "" : "   ", note.c_str());
}

void print_change(const char* title, const StepTimes& times) {
  std::printf("%-18s %9s %14s %9s %9s %10s\n", title, bytes_text(times.sent_bytes).c_str(),
              duration_text(times.communication_us).c_str(), duration_text(times.exposed_us()).c_str(),
              duration_text(times.step_us()).c_str(), percent(times.efficiency()).c_str());
}

void print_changes(const Estimate& estimate) {
  std::printf("\n%-18s %9s %14s %9s %9s %10s\n", "single change", "sent", "communication", "exposed", "step",
              "efficiency");
  print_change("none", estimate.times);
  for (const TrainingChange& change : estimate.changes) print_change(change.option.c_str(), change.times);
  std::printf("%s", wrapped(conclusion_of(estimate), 0, 0).c_str());
}

std::string buckets_in_words(const StepTimes& times) {
  return times.buckets == 1 ? "1 bucket" : std::to_string(static_cast<std::uint32_t>(times.buckets)) + " buckets";
}

void print_times(const StepTimes& times) {
  std::printf(
      "\"gradient_bytes\": %.0f, \"buckets\": %.0f, \"algorithm\": %s, \"sent_bytes\": %.0f, \"compute_us\": %.6g, "
      "\"communication_us\": %.6g, \"hidden_us\": %.6g, \"exposed_us\": %.6g, \"step_us\": %.6g, \"efficiency\": %.6g",
      times.gradient_bytes, times.buckets, json_quoted(times.algorithm).c_str(), times.sent_bytes, times.compute_us,
      times.communication_us, times.hidden_us, times.exposed_us(), times.step_us(), times.efficiency());
}

}  // namespace

void print_text(const Estimate& estimate) {
  const TrainingStep& step = estimate.step;
  const StepTimes& times = estimate.times;
  std::printf("%.0f gradients of %s (%s) in %s, %s\n\n", step.parameters, name(step.type),
              bytes_text(times.gradient_bytes).c_str(), buckets_in_words(times).c_str(), estimate.ranks.c_str());
  print_line("sent per rank", bytes_text(times.sent_bytes));
  print_line("computation", duration_text(times.compute_us),
             step.accumulate == 1 ? "" : std::to_string(step.accumulate) + " micro-batches");
  print_line("communication", duration_text(times.communication_us), times.algorithm);
  print_line("  hidden", duration_text(times.hidden_us));
  print_line("  exposed", duration_text(times.exposed_us()));
  print_line("step", duration_text(times.step_us()));
  char ranks[64];
  const double effective = times.efficiency() * estimate.rank_count;
  std::snprintf(ranks, sizeof ranks, "%u ranks are as fast as %.*f without communication", estimate.rank_count,
                effective < 100 ? 2 : 0, effective);
  print_line("scaling efficiency", percent(times.efficiency()), ranks);
  print_changes(estimate);
  std::printf("\nAssumptions:\n");
  for (const std::string& term : estimate.terms) std::printf("  %s", wrapped(term, 2, 2).c_str());
}

void print_json(const Estimate& estimate) {
  const TrainingStep& step = estimate.step;
  std::printf(
      "{\"parameters\": %.0f, \"type\": \"%s\", \"ranks\": %u, \"compression\": \"%s\", \"accumulate\": %u, "
      "\"bucket_bytes\": %.0f,\n",
      step.parameters, name(step.type), estimate.rank_count, name(step.compression), step.accumulate,
      step.bucket_bytes);
  print_times(estimate.times);
  std::printf(",\n\"changes\": [");
  const char* comma = "";
  for (const TrainingChange& change : estimate.changes) {
    std::printf("%s\n{\"option\": %s, ", comma, json_quoted(change.option).c_str());
    print_times(change.times);
    std::printf("}");
    comma = ",";
  }
  std::printf("],\n\"conclusion\": %s,\n\"assumptions\": [", json_quoted(conclusion_of(estimate)).c_str());
  comma = "";
  for (const std::string& term : estimate.terms) {
    std::printf("%s%s", comma, json_quoted(term).c_str());
    comma = ", ";
  }
  std::printf("]}\n");
}

}  // namespace tutti::tool
