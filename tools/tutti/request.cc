#include "tools/tutti/request.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <string_view>

#include "src/base/read_number.h"
#include "src/base/split_at.h"
#include "tools/tutti/command_line.h"
#include "tools/tutti/options.h"

namespace tutti::tool {

namespace {

constexpr double kMaxBytes = 1e15;
constexpr Rank kMaxRanks = 65536;             // Limit for the plan of one rank.
constexpr Rank kMaxRanksLaidOut = 1'000'000;  // Limit for predictions, which emit no plans.
constexpr Rank kMaxRanksAtOnce = 1024;  // Limit for the plans of all ranks; steps grow with the square of the ranks.

// Splits texts such as "3+5" or "1,7" at `separator`.
Result<std::vector<std::string_view>> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts = split_at(text, separator);
  if (std::find(parts.begin(), parts.end(), "") != parts.end())
    return invalid_argument("number missing before or after '" + std::string(1, separator) + "'");
  return parts;
}

// Parses one number of a list. The error message names the number.
Result<Rank> parse_number(std::string_view text, Rank max_value) {
  Result<Rank> number = parse_count(text, 1, max_value);
  if (number.ok()) return number;
  return invalid_argument("'" + std::string(text) + "' " + std::move(number).status().message());
}

Result<std::vector<Rank>> parse_ranges(std::string_view text, Rank max_value) {
  std::vector<Rank> values;
  const std::vector<std::string_view> parts = TUTTI_TRY(split(text, ','));
  for (const std::string_view part : parts) {
    const std::size_t dash = part.find('-', 1);  // A leading dash is a sign, which is an error.
    const Rank first = TUTTI_TRY(parse_number(part.substr(0, dash), max_value));
    const Rank last =
        dash == std::string_view::npos ? first : TUTTI_TRY(parse_number(part.substr(dash + 1), max_value));
    if (last < first) return invalid_argument("range '" + std::string(part) + "' must begin with the smaller number");
    for (Rank value = first; value <= last; ++value) values.push_back(value);
  }
  return values;
}

// Parses "2x4x8": 2 racks with 4 hosts of 8 ranks each.
Result<Groups> parse_even(std::string_view text) {
  Groups groups;
  std::uint64_t parts = 1;
  const std::vector<std::string_view> sizes = TUTTI_TRY(split(text, 'x'));
  for (std::size_t level = 0; level < sizes.size(); ++level) {
    const Rank size = TUTTI_TRY(parse_number(sizes[level], kMaxRanksLaidOut));
    if (level > 0) groups.emplace(groups.begin(), parts, size);
    parts *= size;
    if (parts > kMaxRanksLaidOut) return invalid_argument("more than " + std::to_string(kMaxRanksLaidOut) + " ranks");
  }
  return groups;
}

// Parses "3+5", a host with 3 ranks and one with 5, and "4+4+4/2+1", three hosts of 4 ranks in racks of 2 hosts and 1.
Result<Groups> parse_uneven(std::string_view text) {
  Groups groups;
  const std::vector<std::string_view> levels = TUTTI_TRY(split(text, '/'));
  for (const std::string_view level : levels) {
    const std::vector<std::string_view> sizes = TUTTI_TRY(split(level, '+'));
    groups.emplace_back();
    for (const std::string_view size : sizes) {
      const Rank members = TUTTI_TRY(parse_number(size, kMaxRanksLaidOut));
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
    if (part.find_first_not_of("0123456789x+/") != std::string_view::npos)
      return invalid_argument("'" + std::string(part) + "' must be a layout, such as 2x4 or 3+5");
    layouts.push_back(TUTTI_TRY(even ? parse_even(part) : parse_uneven(part)));
  }
  return layouts;
}

Result<std::uint32_t> parse_count(std::string_view text, std::uint32_t min_value, std::uint32_t max_value) {
  std::uint32_t value = 0;
  if (read_number(text, value) && value >= min_value && value <= max_value) return value;
  return invalid_argument("must be from " + std::to_string(min_value) + " to " + std::to_string(max_value));
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
  const bool is_number = read_number(digits, value, std::chars_format::fixed);
  const double bytes = value * factor;
  const bool splits_byte = factor == 1 && bytes != std::floor(bytes);
  if (!is_number || splits_byte || !(bytes >= 1 && bytes <= kMaxBytes))
    return invalid_argument("must be a number of bytes from 1 to 1e15, such as 8, 64K, 1.5M or 1G");
  return std::floor(bytes);
}

Result<std::vector<double>> parse_sizes(std::string_view text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) {
    Result<double> one = parse_bytes(text);
    if (one.ok()) return std::vector<double>{one.value()};
    return invalid_argument(std::move(one).status().message() + "; or a range of powers of two, such as 8..16G");
  }
  const std::string from(text.substr(0, dots)), to(text.substr(dots + 2));
  if (from.empty() || to.empty()) return invalid_argument("range must have a size at each end, such as 8..16G");
  for (const std::string& end : {from, to}) {
    Status status = parse_bytes(end).status();
    if (!status.ok()) return invalid_argument("each end " + std::move(status).message() + ", but one is " + end);
  }
  const double first = parse_bytes(from).value(), last = parse_bytes(to).value();
  if (last < first) return invalid_argument("range must begin with the smaller size, such as " + to + ".." + from);
  std::vector<double> sizes;
  for (double bytes = first; bytes <= last; bytes *= 2) sizes.push_back(bytes);
  return sizes;
}

namespace {

Status apply(Request& request, bool plans, int key, const std::string& value) {
  switch (key) {
    case kAll: request.all = true; break;
    case kCollective: request.collective = TUTTI_TRY(parse_collective(value)); break;
    case kAlgorithm: request.algorithm = value; break;
    case kRanks: request.ranks = TUTTI_TRY(parse_ranges(value, plans ? kMaxRanks : kMaxRanksAtOnce)); break;
    case kRank: request.rank = TUTTI_TRY(parse_count(value, 0, kMaxRanks)); break;
    case kRoot: request.root = TUTTI_TRY(parse_count(value, 0, kMaxRanks)); break;
    case kInPlace: request.in_place = true; break;
    case kGroups: request.layouts = TUTTI_TRY(parse_layouts(value)); break;
    case kFused: request.fused = true; break;
    case kDot: request.dot = true; break;
    default: return not_implemented();
  }
  return {};
}

// The plan of one rank can be emitted alone. Graphs, fused plans and proofs need the plans of all ranks.
Status check_size(const Request& request, bool plans) {
  const bool alone = plans && request.rank && !request.fused && !request.dot;
  for (const Rank ranks : request.ranks) {
    if (ranks <= (alone ? kMaxRanks : kMaxRanksAtOnce)) continue;
    std::string message = std::to_string(ranks) + " ranks are too many; the maximum is " +
                          std::to_string(alone ? kMaxRanks : kMaxRanksAtOnce);
    if (plans && !alone) message += ", or " + std::to_string(kMaxRanks) + " with --rank and neither --fused nor --dot";
    return invalid_argument(std::move(message));
  }
  return {};
}

// Each level must place all members of the level before it: racks place all hosts.
Status check_levels(const Groups& groups) {
  for (std::size_t level = 1; level < groups.size(); ++level) {
    const auto members = std::accumulate(groups[level].begin(), groups[level].end(), std::uint64_t{0});
    if (members == groups[level - 1].size()) continue;
    return invalid_argument("--groups: a level has " + std::to_string(groups[level - 1].size()) +
                            (level == 1 ? " hosts" : " groups") + ", but the next level places " +
                            std::to_string(members));
  }
  return {};
}

// --ranks and --groups must agree if both are given.
Status check_layouts(const Request& request) {
  std::vector<Rank> sizes;
  for (const Groups& groups : request.layouts) {
    TUTTI_CHECK_OK(check_levels(groups));
    sizes.push_back(ranks_in(groups));
    if (std::find(request.ranks.begin(), request.ranks.end(), sizes.back()) != request.ranks.end()) continue;
    return invalid_argument("a layout of --groups has " + std::to_string(sizes.back()) +
                            " ranks in total, which --ranks does not contain; '+' joins the hosts of a layout (3+2)");
  }
  for (const Rank ranks : request.ranks) {
    if (sizes.empty() || std::find(sizes.begin(), sizes.end(), ranks) != sizes.end()) continue;
    return invalid_argument("--ranks " + std::to_string(ranks) + ": no layout of --groups has this number of ranks");
  }
  return {};
}

Status check_verify(const Request& request) {
  if (!request.all || (!request.collective && request.algorithm.empty())) return {};
  return invalid_argument("--all excludes --collective and --algorithm");
}

Status check_plan(const Request& request, const GivenOptions& given) {
  if (request.ranks.size() != 1)
    return invalid_argument("tutti plan needs one number of --ranks, or one layout of --groups");
  const std::string allowed = "must be from 0 to " + std::to_string(request.ranks.front() - 1);
  const std::pair<Rank, const char*> named[] = {{request.root, "--root "}, {request.rank.value_or(0), "--rank "}};
  for (const auto& [rank, option] : named)
    if (rank >= request.ranks.front()) return invalid_argument(option + std::to_string(rank) + ": " + allowed);
  if (given.has(kRoot) && !has_root(*request.collective))
    return invalid_argument("--root: " + std::string(name(*request.collective)) + " has no root");
  return {};
}

// Reports all that is missing at once.
Status check_completeness(const Command& command, const Request& request) {
  const bool plans = std::string_view(command.name) == "plan";
  const bool named = !request.algorithm.empty();
  const std::pair<bool, const char*> wanted[] = {
      {request.collective || request.all || (named && !plans),
       plans ? "--collective" : "one of --all, --collective and --algorithm"},
      {!plans || named, "--algorithm"},
      {!request.ranks.empty(), "--ranks or --groups"}};
  std::string missing;
  for (const auto& [given, option] : wanted) {
    if (!given) missing.append(missing.empty() ? "" : ", ").append(option);
  }
  if (missing.empty()) return {};
  return invalid_argument("tutti " + std::string(command.name) + " needs " + missing + see_help(command));
}

}  // namespace

Result<double> parse_number(const std::string& text, double below) {
  double value = 0;
  if (read_number(text, value) && value > 0 && value < below) return value;
  char limit[32];
  std::snprintf(limit, sizeof limit, "%g", below);
  return invalid_argument(std::string("must be above 0 and below ") + limit);
}

Result<DataType> parse_float_type(const std::string& text) {
  for (const DataType type : {DataType::float32, DataType::float16, DataType::bfloat16})
    if (text == name(type)) return type;
  return invalid_argument("must be float32, float16 or bfloat16 (other types are not compressed)");
}

Result<Request> parse_request(const Command& command, int argc, char** argv) {
  Request request;
  const bool plans = std::string_view(command.name) == "plan";
  const GivenOptions given = TUTTI_TRY(parse_options(
      command, argc, argv, [&](int key, const std::string& value) { return apply(request, plans, key, value); }));
  if (request.ranks.empty()) {
    for (const Groups& groups : request.layouts) request.ranks.push_back(ranks_in(groups));
  }
  TUTTI_CHECK_OK(check_completeness(command, request));
  TUTTI_CHECK_OK(check_layouts(request));
  TUTTI_CHECK_OK(check_size(request, plans));
  TUTTI_CHECK_OK(plans ? check_plan(request, given) : check_verify(request));
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
