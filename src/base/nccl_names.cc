#include "src/base/nccl_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <string_view>
#include <utility>

#include "src/base/read_number.h"
#include "src/base/split_at.h"

namespace tutti {
namespace {

struct Known {
  std::string_view theirs;  // In lower case, as NCCL compares them.
  std::string_view ours;    // Empty: no effect.
  std::string_view why;
};

constexpr Known kAlgorithms[] = {
    {"ring", "ring", ""},
    {"tree", "double_binary_tree", ""},
    {"nvls", "switch_staged", ""},
    {"nvlstree", "tree_staged", ""},
    {"collnetdirect", "", "reduction in network switches is not supported"},
    {"collnetchain", "", "reduction in network switches is not supported"},
    {"pat", "bruck", ""},
};
constexpr Known kProtocols[] = {{"ll", "LL", ""}, {"ll128", "LL128", ""}, {"simple", "Simple", ""}};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& letter : result) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return result;
}

std::string known_names(std::span<const Known> known) {
  std::string names;
  for (const Known& one : known) names.append(names.empty() ? "" : ", ").append(one.theirs);
  return names;
}

// Translates the list of one function. Returns "" and adds a warning if it cannot be applied.
std::string one_of(const std::string& variable, std::string_view list, std::span<const Known> known,
                   std::vector<std::string>& warnings) {
  if (list.starts_with('^')) {
    warnings.push_back(variable + "=" + std::string(list) + " ignored: exclusion lists are not supported");
    return "";
  }
  const std::vector<std::string_view> names = split_at(list, ',');
  const auto find = [&](std::string_view name) {
    return std::find_if(known.begin(), known.end(), [&](const Known& one) { return one.theirs == lower(name); });
  };
  if (std::count_if(names.begin(), names.end(), [&](std::string_view name) { return find(name) != known.end(); }) > 1) {
    warnings.push_back(variable + "=" + std::string(list) +
                       " ignored: lists are not supported, only one name can be forced");
    return "";
  }
  for (const std::string_view name : names) {
    const auto found = find(name);
    if (found != known.end() && !found->ours.empty()) return std::string(found->ours);
    const std::string why = found != known.end() ? std::string(found->why) : "valid names are " + known_names(known);
    warnings.push_back(std::string(name) + " of " + variable + " has no effect: " + why);
  }
  return "";
}

// Translates lists for several functions, separated by semicolons; "function:" before a list restricts it to that
// function. Our settings apply to all collectives that have the algorithm.
std::string translated(const std::string& variable, const std::string& value, std::span<const Known> known,
                       std::vector<std::string>& warnings) {
  std::string chosen;
  for (const std::string_view part : split_at(value, ';')) {
    const std::size_t colon = part.find(':');
    const std::string_view list = colon == std::string_view::npos ? part : part.substr(colon + 1);
    if (list.empty()) continue;
    const std::string function = colon == std::string_view::npos ? "" : lower(part.substr(0, colon));
    const std::string ours = one_of(variable, list, known, warnings);
    if (ours.empty()) continue;
    if (function.empty() || (function == "allreduce" && ours == "double_binary_tree")) {
      chosen = ours;
    } else {
      warnings.push_back(std::string(part) + " of " + variable +
                         " ignored: a name is forced for all collectives that have it");
    }
  }
  return chosen;
}

}  // namespace

std::string algorithm_of_nccl(const std::string& value, std::vector<std::string>& warnings) {
  return translated("NCCL_ALGO", value, kAlgorithms, warnings);
}

std::string protocol_of_nccl(const std::string& value, std::vector<std::string>& warnings) {
  return translated("NCCL_PROTO", value, kProtocols, warnings);
}

std::vector<std::string> notes_on_nccl_variables(const Environment& environment, std::span<const Variable> known) {
  constexpr std::string_view kSubsystems = "NCCL_DEBUG_SUBSYS";
  // By libnccl.so.2.
  constexpr std::string_view kReadElsewhere[] = {"NCCL_COMM_BLOCKING", "NCCL_MIN_CTAS", "NCCL_MAX_CTAS",
                                                 "NCCL_CTA_POLICY"};
  constexpr std::string_view kNets[] = {"socket", "ib", "ucx"};  // Values of NCCL_NET that it reads.
  const auto contains = [](std::span<const std::string_view> all, std::string_view one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  };
  std::vector<std::string> notes;
  if (const auto subsystems = environment.get(std::string(kSubsystems))) {
    notes.push_back(std::string(kSubsystems) + "=" + *subsystems +
                    " has no effect: log lines have no subsystems; TUTTI_LOG or NCCL_DEBUG sets the level");
  }
  const std::string plugin = environment.get("NCCL_NET_PLUGIN").value_or("");
  if (!plugin.empty() && lower(plugin) != "none" &&
      !environment.get("TUTTI_TRANSPORT").value_or("").ends_with("net_plugin")) {
    notes.push_back("NCCL_NET_PLUGIN=" + plugin +
                    " has an effect only with the transport net_plugin, as in TUTTI_TRANSPORT=shm+net_plugin");
  }
  std::string ignored;
  for (const auto& [name, value] : environment.variables()) {
    if (!name.starts_with("NCCL_") || value.empty() || name == kSubsystems) continue;
    if (contains(kReadElsewhere, name) || (name == "NCCL_NET" && contains(kNets, lower(value)))) continue;
    const std::string& written = name;
    const auto is_alias = [&](const Variable& one) { return one.alias != nullptr && written == one.alias; };
    if (std::any_of(known.begin(), known.end(), is_alias)) continue;
    ignored += (ignored.empty() ? "" : ", ") + name;
  }
  if (!ignored.empty()) notes.push_back("variables of NCCL that have no effect in Tutti: " + ignored);
  return notes;
}

bool parse_level(const std::string& text, LogLevel& level) {
  std::optional<LogLevel> parsed = log_level_of(text);
  if (lower(text) == "version" || lower(text) == "abort") parsed = LogLevel::warn;
  if (!parsed) return false;
  level = *parsed;
  return true;
}

bool parse_p2p_level(const std::string& text, P2pLevel& level) {
  constexpr std::array kNumbered = {P2pLevel::loc, P2pLevel::pix, P2pLevel::pxb,
                                    P2pLevel::phb, P2pLevel::phb, P2pLevel::sys};
  std::uint32_t number = 0;
  if (read_number(text, number)) {
    level = kNumbered[std::min<std::size_t>(number, kNumbered.size() - 1)];
    return true;
  }
  const std::optional<P2pLevel> named = p2p_level_of(text);
  if (named) level = *named;
  return named.has_value();
}

bool parse_gpudirect(const std::string& text, GpuDirect& wanted) {
  constexpr std::pair<const char*, GpuDirect> kWords[] = {
      {"auto", GpuDirect::automatic}, {"off", GpuDirect::off}, {"on", GpuDirect::on}};
  for (const auto& [word, meant] : kWords) {
    if (text != word) continue;
    wanted = meant;
    return true;
  }
  const std::optional<P2pLevel> level = text == "0" ? P2pLevel::loc : p2p_level_of(text);
  if (level) wanted = *level == P2pLevel::loc ? GpuDirect::off : GpuDirect::automatic;
  return level.has_value();
}

}  // namespace tutti
