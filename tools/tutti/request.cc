#include "tools/tutti/request.h"

#include <getopt.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <string_view>

#include "tools/tutti/given.h"

namespace tutti::tool {

namespace {

constexpr double kMaxBytes = 1e15;
constexpr Rank kMaxRanks = 65536;             // Of one rank alone.
constexpr Rank kMaxRanksLaidOut = 1'000'000;  // Of predictions, which write no plans.
constexpr Rank kMaxRanksAtOnce = 1024;        // Of all ranks together: their steps grow with the square of the ranks.
constexpr std::string_view kCommands = "plan, verify, explain, topo, simulate, doctor, version, help";

// The parts of "3+5" or "1,7", by their separator.
Result<std::vector<std::string_view>> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (parts.back().empty()) return invalid_argument("nothing before or after a '" + std::string(1, separator) + "'");
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

Result<Rank> parse_number(std::string_view text, Rank least = 1) { return parse_count(text, least, kMaxRanks); }

Result<std::vector<Rank>> parse_ranges(std::string_view text) {
  std::vector<Rank> values;
  const std::vector<std::string_view> parts = TUTTI_TRY(split(text, ','));
  for (const std::string_view part : parts) {
    const std::size_t dash = part.find('-', 1);  // One in front is a sign, which no number here has.
    const Rank first = TUTTI_TRY(parse_number(part.substr(0, dash)));
    const Rank last = dash == std::string_view::npos ? first : TUTTI_TRY(parse_number(part.substr(dash + 1)));
    if (last < first)
      return invalid_argument("'" + std::string(part) + "' is no range: the smaller number comes first");
    for (Rank value = first; value <= last; ++value) values.push_back(value);
  }
  return values;
}

// "2x4x8": 2 racks with 4 hosts of 8 ranks each.
Result<Groups> parse_even(std::string_view text) {
  Groups groups;
  std::uint64_t parts = 1;
  const std::vector<std::string_view> sizes = TUTTI_TRY(split(text, 'x'));
  for (std::size_t level = 0; level < sizes.size(); ++level) {
    const Rank size = TUTTI_TRY(parse_number(sizes[level]));
    if (level > 0) groups.emplace(groups.begin(), parts, size);
    parts *= size;
    if (parts > kMaxRanksLaidOut) return invalid_argument("more than " + std::to_string(kMaxRanksLaidOut) + " ranks");
  }
  return groups;
}

// "3+5": a host with 3 ranks and one with 5; "4+4+4/2+1": the same of hosts in racks.
Result<Groups> parse_uneven(std::string_view text) {
  Groups groups;
  const std::vector<std::string_view> levels = TUTTI_TRY(split(text, '/'));
  for (const std::string_view level : levels) {
    const std::vector<std::string_view> sizes = TUTTI_TRY(split(level, '+'));
    groups.emplace_back();
    for (const std::string_view size : sizes) {
      const Rank members = TUTTI_TRY(parse_number(size));
      groups.back().push_back(members);
    }
  }
  return groups;
}

}  // namespace

Result<std::vector<Groups>> parse_layouts(std::string_view text) {
  std::vector<Groups> layouts;
  const std::vector<std::string_view> parts = TUTTI_TRY(split(text, ','));
  for (const std::string_view part : parts) {
    const bool even = part.find('x') != std::string_view::npos;
    layouts.push_back(TUTTI_TRY(even ? parse_even(part) : parse_uneven(part)));
  }
  return layouts;
}

Result<std::uint32_t> parse_count(std::string_view text, std::uint32_t least, std::uint32_t most) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
  if (error == std::errc() && end == text.end() && value >= least && value <= most) return value;
  return invalid_argument("'" + std::string(text) + "' is no number from " + std::to_string(least) + " to " +
                          std::to_string(most));
}

Result<double> parse_bytes(std::string_view text) {
  constexpr std::string_view kUnits = "KMGT";
  double factor = 1;
  std::string_view digits = text;
  const std::size_t unit = text.empty() ? std::string_view::npos : kUnits.find(text.back());
  if (unit != std::string_view::npos) {
    for (std::size_t i = 0; i <= unit; ++i) factor *= 1024;
    digits.remove_suffix(1);
  }
  double value = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), value, std::chars_format::fixed);
  const double bytes = value * factor;
  if (error != std::errc() || end != digits.end() || !(bytes >= 1 && bytes <= kMaxBytes))
    return invalid_argument("'" + std::string(text) + "' is no number of bytes: 8, 64K, 1.5M, 1G");
  return std::floor(bytes);
}

namespace {

enum Option { kAll, kCollective, kAlgorithm, kRanks, kRank, kRoot, kInPlace, kGroups, kFused, kDot, kHelp };

constexpr option kOptions[] = {
    {"all", no_argument, nullptr, kAll},
    {"collective", required_argument, nullptr, kCollective},
    {"algorithm", required_argument, nullptr, kAlgorithm},
    {"ranks", required_argument, nullptr, kRanks},
    {"rank", required_argument, nullptr, kRank},
    {"root", required_argument, nullptr, kRoot},
    {"in-place", no_argument, nullptr, kInPlace},
    {"groups", required_argument, nullptr, kGroups},
    {"fused", no_argument, nullptr, kFused},
    {"dot", no_argument, nullptr, kDot},
    {"help", no_argument, nullptr, kHelp},
    {},
};

Status apply(Request& request, int option, std::string_view value) {
  switch (option) {
    case kAll: request.all = true; break;
    case kCollective: request.collective = TUTTI_TRY(parse_collective(value)); break;
    case kAlgorithm: request.algorithm = value; break;
    case kRanks: request.ranks = TUTTI_TRY(parse_ranges(value)); break;
    case kRank: request.rank = TUTTI_TRY(parse_number(value, 0)); break;
    case kRoot:
      request.root = TUTTI_TRY(parse_number(value, 0));
      request.root_given = true;
      break;
    case kInPlace: request.in_place = true; break;
    case kGroups: request.layouts = TUTTI_TRY(parse_layouts(value)); break;
    case kFused: request.fused = true; break;
    case kDot: request.dot = true; break;
    case kHelp:
    case 'h': request.command.clear(); break;
    case ':': return invalid_argument("it wants a value after it");
    default: return invalid_argument("there is no such option");
  }
  return {};
}

// One rank's plan can be written alone; drawings, merged stages and proofs want all of them.
Status check_size(const Request& request) {
  const bool alone = request.command == "plan" && request.rank && !request.fused && !request.dot;
  for (const Rank ranks : request.ranks) {
    if (ranks <= (alone ? kMaxRanks : kMaxRanksAtOnce)) continue;
    if (alone) return invalid_argument("a plan is written for at most " + std::to_string(kMaxRanks) + " ranks");
    return invalid_argument("plans of " + std::to_string(ranks) + " ranks are too large to be held at once; at most " +
                            std::to_string(kMaxRanksAtOnce) + ", or the plan of one --rank without --fused and --dot");
  }
  return {};
}

// Each level is made of all that the level before it counts.
Status check_levels(const Groups& groups) {
  for (std::size_t level = 1; level < groups.size(); ++level) {
    const auto members = std::accumulate(groups[level].begin(), groups[level].end(), std::uint64_t{0});
    if (members == groups[level - 1].size()) continue;
    return invalid_argument("--groups have " + std::to_string(groups[level - 1].size()) +
                            (level == 1 ? " hosts" : " groups") + ", but " + std::to_string(members) +
                            " of them in the next level");
  }
  return {};
}

// Where both are given they have to agree.
Status check_layouts(const Request& request) {
  std::vector<Rank> sizes;
  for (const Groups& groups : request.layouts) {
    TUTTI_CHECK_OK(check_levels(groups));
    sizes.push_back(ranks_in(groups));
    if (std::find(request.ranks.begin(), request.ranks.end(), sizes.back()) != request.ranks.end()) continue;
    return invalid_argument(
        "--groups have a layout with " + std::to_string(sizes.back()) +
        " ranks together, but --ranks is another number: hosts of one layout are joined by '+', as 3+2");
  }
  for (const Rank ranks : request.ranks) {
    if (sizes.empty() || std::find(sizes.begin(), sizes.end(), ranks) != sizes.end()) continue;
    return invalid_argument("--ranks has " + std::to_string(ranks) + ", but no layout of --groups has so many");
  }
  return {};
}

// What verify would not heed: it goes through roots, both ways of passing buffers, and fusion by itself.
Status check_verify(const Request& request) {
  const std::pair<bool, const char*> ignored[] = {{request.rank.has_value(), "--rank"},
                                                  {request.root_given, "--root"},
                                                  {request.in_place, "--in-place"},
                                                  {request.fused, "--fused"},
                                                  {request.dot, "--dot"}};
  for (const auto& [given, option] : ignored) {
    if (given) {
      return invalid_argument("verify does not take " + std::string(option) +
                              ": it proves every class of root, in and out of place, as written and fused");
    }
  }
  if (request.all && (request.collective || !request.algorithm.empty())) {
    return invalid_argument("verify takes --all, or --collective and --algorithm");
  }
  return {};
}

// Names all that is missing at once.
Status check_completeness(const Request& request) {
  const bool plans = request.command == "plan";
  const bool named = !request.algorithm.empty();
  const std::pair<bool, const char*> wanted[] = {{request.collective || request.all || (named && !plans),
                                                  plans ? "--collective" : "--all, --collective or --algorithm"},
                                                 {!plans || request.all || named, "--algorithm"},
                                                 {!request.ranks.empty(), "--ranks"}};
  std::string missing;
  for (const auto& [given, option] : wanted) {
    if (!given) missing.append(missing.empty() ? "" : ", ").append(option);
  }
  return missing.empty() ? Status() : invalid_argument(request.command + " wants " + missing + "; see tutti help");
}

Status check(const Request& request) {
  if (request.command == "doctor" || request.command == "version" || request.command.empty()) return {};
  if (request.command != "plan" && request.command != "verify") {
    return invalid_argument("'" + request.command + "' is no command; the commands are " + std::string(kCommands));
  }
  TUTTI_CHECK_OK(check_completeness(request));
  TUTTI_CHECK_OK(check_layouts(request));
  TUTTI_CHECK_OK(check_size(request));
  if (request.command == "verify") return check_verify(request);
  if (request.all) return invalid_argument("plan does not take --all: it wants one --collective and --algorithm");
  if (request.ranks.size() != 1) return invalid_argument("plan wants one number of --ranks, or one layout of --groups");
  const Rank ranks = request.ranks.front();
  const std::pair<Rank, const char*> named[] = {{request.root, "--root "}, {request.rank.value_or(0), "--rank "}};
  for (const auto& [rank, option] : named) {
    if (rank >= ranks)
      return invalid_argument(option + std::to_string(rank) + ": ranks count from 0 to " + std::to_string(ranks - 1));
  }
  if (request.root_given && !has_root(*request.collective)) {
    return invalid_argument("--root has no meaning for " + std::string(name(*request.collective)) + ": it has none");
  }
  return {};
}

}  // namespace

Result<double> parse_number(const std::string& text, double below) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value > 0 && value < below) return value;
  char limit[32];
  std::snprintf(limit, sizeof limit, "%g", below);
  return invalid_argument("'" + text + "' is no number above 0 and below " + limit);
}

Result<DataType> parse_float_type(const std::string& text) {
  for (const DataType type : {DataType::float32, DataType::float16, DataType::bfloat16})
    if (text == name(type)) return type;
  return invalid_argument("'" + text + "' is none of float32, float16 and bfloat16, which alone may be rounded");
}

Result<Request> parse_request(int argc, char** argv) {
  Request request;
  if (argc < 2) return request;
  const std::string_view first = argv[1];
  if (first == "--version") request.command = "version";
  if (first == "--version" || first == "--help" || first == "-h") {
    if (argc > 2) return invalid_argument(std::string("'") + argv[2] + "' is one argument too many");
    return request;
  }
  request.command = first;
  if (request.command == "help") request.command.clear();
  opterr = 0;                    // The sentences are ours.
  char** const rest = argv + 1;  // From the command on.
  const int count = argc - 1;
  GivenOptions given;
  for (optind = 0;;) {  // 0 forgets what an earlier line left.
    const int at = std::max(optind, 1);
    const int chosen = getopt_long(count, rest, ":h", kOptions, nullptr);
    if (chosen == -1) break;
    Status status = given.add(chosen, optarg);
    if (status.ok()) status = apply(request, chosen, optarg ? optarg : "");
    TUTTI_CHECK_OK(std::move(status).during(std::string("reading ") + rest[at]));
  }
  if (optind < count) return invalid_argument(std::string("'") + rest[optind] + "' is one argument too many");
  if (request.ranks.empty()) {
    for (const Groups& groups : request.layouts) request.ranks.push_back(ranks_in(groups));
  }
  TUTTI_CHECK_OK(check(request));
  return request;
}

Rank ranks_in(const Groups& groups) { return std::accumulate(groups.front().begin(), groups.front().end(), Rank{0}); }

Problem problem_of(const Request& request, Rank ranks) {
  return {.collective = *request.collective,
          .ranks = ranks,
          .root = has_root(*request.collective) ? request.root : 0,
          .in_place = request.in_place,
          .groups = request.layouts.empty() ? Groups() : request.layouts.front()};
}

}  // namespace tutti::tool
