#include "src/tuner/tune_cache.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "src/base/read_number.h"
#include "src/base/split_at.h"

namespace tutti {
namespace {

constexpr std::string_view kFirstLine = "tutti-tune 2";
constexpr std::size_t kMaxLineBytes = 400;
constexpr std::size_t kMaxMachines = 256;
constexpr std::size_t kMaxClasses = 4096;  // Per machine.
constexpr std::size_t kMaxCandidates = 64;
constexpr std::uint32_t kMaxSizeClass = 127;

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words = split_at(line, ' ');
  std::erase(words, "");
  return words;
}

bool parse_us(std::string_view text, double& us) { return read_number(text, us) && std::isfinite(us) && us >= 0; }

bool parse_protocol(std::string_view text, Protocol& protocol) {
  for (const Protocol known : {Protocol::simple, Protocol::ll, Protocol::ll128}) {
    protocol = known;
    if (text == name(known)) return true;
  }
  return false;
}

bool parse_class(const std::vector<std::string_view>& words, TunedClass& tuned) {
  tuned.mapped = words.size() == 4 && words[3] == "mapped";
  if (words.size() != 3 && !tuned.mapped) return false;
  const Result<Collective> collective = parse_collective(words[1]);
  if (collective.ok()) tuned.collective = collective.value();
  return collective.ok() && read_number(words[2], tuned.size_class) && tuned.size_class <= kMaxSizeClass;
}

bool parse_candidate(const std::vector<std::string_view>& words, TunedCandidate& candidate) {
  if (words.size() != 7) return false;
  candidate.algorithm = words[1];
  return parse_protocol(words[2], candidate.protocol) && read_number(words[3], candidate.chunk_bytes) &&
         read_number(words[4], candidate.channels) && parse_us(words[5], candidate.predicted_us) &&
         parse_us(words[6], candidate.measured_us);
}

// Parses one line. Returns null on success, otherwise the error.
const char* take_line(std::string_view line, TuneCache& cache) {
  if (line.size() > kMaxLineBytes) return "is too long";
  if (line.empty() || line[0] == '#') return nullptr;
  const std::vector<std::string_view> words = words_of(line);
  const std::string_view kind = words.empty() ? "" : words[0];
  if (kind == "machine") {
    if (cache.machines.size() == kMaxMachines) return "exceeds the maximum number of machines";
    if (words.size() < 2) return "contains no name";
    cache.machines.push_back({std::string(line.substr(static_cast<std::size_t>(words[1].data() - line.data()))), {}});
    return nullptr;
  }
  if (cache.machines.empty()) return "precedes the first machine";
  std::vector<TunedClass>& classes = cache.machines.back().classes;
  if (kind == "class") {
    if (classes.size() == kMaxClasses) return "exceeds the maximum number of classes";
    if (!classes.empty() && classes.back().candidates.empty()) return "follows a class without a kept candidate";
    return parse_class(words, classes.emplace_back()) ? nullptr : "is not a valid class";
  }
  if (kind != "kept" && kind != "tried") return "has an unknown keyword";
  if (classes.empty()) return "precedes the first class";
  std::vector<TunedCandidate>& candidates = classes.back().candidates;
  if ((kind == "kept") != candidates.empty())
    return "is out of order: the kept candidate must be the first of its class";
  if (candidates.size() == kMaxCandidates) return "exceeds the maximum number of candidates";
  return parse_candidate(words, candidates.emplace_back()) ? nullptr : "is not a valid candidate";
}

std::string number(double value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return {text, end};
}

}  // namespace

std::uint32_t size_class(std::uint64_t bytes) {
  if (bytes < 2) return 0;
  const auto power = static_cast<std::uint32_t>(std::bit_width(bytes) - 1);
  return 2 * power + static_cast<std::uint32_t>(bytes >> (power - 1) & 1);
}

std::uint64_t min_bytes(std::uint32_t size_class) {
  const std::uint64_t power = std::uint64_t{1} << size_class / 2;
  return size_class % 2 == 0 ? power : power + power / 2;
}

bool TunedClass::same_calls(const TunedClass& other) const {
  return collective == other.collective && size_class == other.size_class && mapped == other.mapped;
}

const TuneCache::Machine* TuneCache::find(std::string_view machine) const {
  const auto found =
      std::find_if(machines.begin(), machines.end(), [&](const auto& one) { return one.name == machine; });
  return found == machines.end() ? nullptr : &*found;
}

void TuneCache::keep(std::string_view machine, TunedClass tuned) {
  auto found = std::find_if(machines.begin(), machines.end(), [&](const auto& one) { return one.name == machine; });
  if (found == machines.end()) {
    if (machines.size() == kMaxMachines) machines.erase(machines.begin());
    machines.push_back({std::string(machine), {}});
    found = machines.end() - 1;
  }
  std::erase_if(found->classes, [&](const TunedClass& known) { return known.same_calls(tuned); });
  found->classes.push_back(std::move(tuned));
}

Status check_machine_name(const std::string& name) {
  TuneCache cache;
  const char* wrong = name.find('\n') == std::string::npos ? take_line("machine " + name, cache) : "is not one line";
  if (wrong == nullptr && cache.find(name) != nullptr) return {};
  return invalid_usage("the name of the machine " + std::string(wrong == nullptr ? "begins with a space" : wrong) +
                       ": " + name.substr(0, kMaxLineBytes));
}

std::string format(const TuneCache& cache) {
  std::string text = std::string(kFirstLine) + "\n";
  for (const TuneCache::Machine& machine : cache.machines) {
    text += "machine " + machine.name + "\n";
    for (const TunedClass& tuned : machine.classes) {
      text += std::string("class ") + name(tuned.collective) + " " + std::to_string(tuned.size_class) +
              (tuned.mapped ? " mapped\n" : "\n");
      for (const TunedCandidate& candidate : tuned.candidates) {
        text += std::string(&candidate == &tuned.candidates[0] ? "kept " : "tried ") + candidate.algorithm + " " +
                name(candidate.protocol) + " " + std::to_string(candidate.chunk_bytes) + " " +
                std::to_string(candidate.channels) + " " + number(candidate.predicted_us) + " " +
                number(candidate.measured_us) + "\n";
      }
    }
  }
  return text;
}

Result<TuneCache> parse_tune_cache(std::string_view text) {
  TuneCache cache;
  if (text.empty()) return cache;
  if (const std::string_view first = text.substr(0, text.find('\n')); first != kFirstLine) {
    const std::string wanted = "line 1 is not \"" + std::string(kFirstLine) + "\"";
    return invalid_usage(first.starts_with("tutti-tune ")
                             ? wanted + ": another version wrote the file; delete it to tune again"
                             : wanted);
  }
  for (std::size_t line_number = 1; !text.empty(); ++line_number) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return invalid_usage("line " + std::to_string(line_number) + " is truncated");
    const char* wrong = line_number == 1 ? nullptr : take_line(text.substr(0, end), cache);
    if (wrong != nullptr) return invalid_usage("line " + std::to_string(line_number) + " " + wrong);
    text.remove_prefix(end + 1);
  }
  for (const TuneCache::Machine& machine : cache.machines) {
    for (const TunedClass& tuned : machine.classes) {
      if (tuned.candidates.empty()) return invalid_usage("the last class has no kept candidate");
    }
  }
  return cache;
}

}  // namespace tutti
