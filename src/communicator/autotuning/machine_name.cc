#include "src/communicator/autotuning/machine_name.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <tuple>
#include <utility>

#include "src/base/counted.h"
#include "src/base/hash.h"
#include "src/base/own_cpus.h"
#include "src/topology/paths.h"
#include "src/tuner/map_ranks.h"

namespace tutti {
namespace {

constexpr std::size_t kMaxModelBytes = 100;
// Maximum number of kinds in a name. Beyond it, only the layout code distinguishes machines.
constexpr std::size_t kMaxKinds = 4;
constexpr std::string_view kLinks = "links ", kHosts = "hosts ";

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return model_in_words(line.substr(colon + 2));
  }
  return "a processor without a name";
}

std::string joined(const std::vector<std::string>& kinds, const std::string& between) {
  std::string all;
  for (std::size_t i = 0; i < kinds.size() && i < kMaxKinds; ++i) all += (i == 0 ? "" : between) + kinds[i];
  return all + (kinds.size() > kMaxKinds ? between + "more" : "");
}

// first[rank] is the first rank of the rank's group. Returns whether the number of groups and of ranks determines the
// layout.
bool is_regular(const std::vector<Rank>& first) {
  const auto size = static_cast<Rank>(std::count(first.begin(), first.end(), Rank{0}));
  for (Rank rank = 0; rank < first.size(); ++rank)
    if (first[rank] != rank - rank % size) return false;
  return !first.empty() && first.size() % size == 0;
}

std::vector<Rank> sizes_of(const std::vector<Rank>& first) {
  std::map<Rank, Rank> sizes;
  for (const Rank group : first) ++sizes[group];
  std::vector<Rank> all;
  for (const auto& [group, size] : sizes) all.push_back(size);
  return all;
}

std::string laid_out_as(std::uint32_t code) {
  char text[32];
  std::snprintf(text, sizeof text, ", laid out as %08x", code);
  return text;
}

std::string laid_out_as(const std::vector<std::vector<Rank>>& layouts) {
  std::uint32_t code = 0;
  for (const std::vector<Rank>& first : layouts)
    for (const Rank group : first) code = hashed(code, std::to_string(group) + " ");
  return laid_out_as(code);
}

struct Sharing {
  std::string words;
  std::vector<Rank> first;  // first[rank]: the first rank with the same CPUs.
  bool alike = true;
};

// Returns which ranks share CPUs. If not reported, ranks are threads of this process and not pinned.
Sharing sharing_of(const Hosts& hosts) {
  Sharing sharing;
  if (hosts.machine_shares().empty()) {
    sharing.words = counted(hosts.ranks(), "rank") + " in a process on " + counted(own_cpus().size(), "CPU");
    return sharing;
  }
  std::map<std::tuple<Rank, std::uint32_t, std::uint32_t>, Rank> groups;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Rank> kinds;
  for (Rank rank = 0; rank < hosts.ranks(); ++rank) {
    const Hosts::MachineShare& share = hosts.machine_shares()[rank];
    const std::tuple key(share.machine, share.first_cpu, share.own_cpus);
    sharing.first.push_back(groups.try_emplace(key, rank).first->second);
    ++kinds[{share.sharers, share.own_cpus}];
  }
  std::vector<std::string> words;
  for (const auto& [kind, ranks] : kinds)
    words.push_back(counted(kind.first, "rank") + " on " + counted(kind.second, "CPU"));
  sharing.words = joined(words, " and ");
  sharing.alike = kinds.size() == 1;
  return sharing;
}

// Rounds to powers of ten, since repeated measurements may differ by a factor of the square root of 2, or of 2. Powers
// of ten are in the middle of a class. 25 and 40 Gbit/s are close to an edge, and may get two names.
std::string rate_in_words(double gbytes_per_s) {
  constexpr std::array<const char*, 7> kRates = {"1 Mbit/s",  "10 Mbit/s",  "100 Mbit/s", "1 Gbit/s",
                                                 "10 Gbit/s", "100 Gbit/s", "1000 Gbit/s"};
  const double tens = std::round(std::log10(8'000 * std::max(gbytes_per_s, 1e-6)));
  return std::string("about ") + kRates[static_cast<std::size_t>(std::clamp(tens, 0.0, 6.0))];
}

std::string time_in_words(double us) {
  if (us < 100) return "under 100 us";
  if (us < 1'000) return "under 1 ms";
  return us < 10'000 ? "under 10 ms" : "10 ms or more";
}

std::string ways_between(const Hosts& hosts) {
  if (hosts.is_one_host()) return "shm";
  if (hosts.network())
    return hosts.transport() + ", " + rate_in_words(hosts.network()->host_gbytes_per_s) + ", " +
           time_in_words(hosts.network()->message_us);
  return hosts.transport() + (hosts.one_machine() ? "" : ", links not measured");
}

std::vector<std::string_view> parts_of(std::string_view name) {
  std::vector<std::string_view> parts;
  for (std::size_t end = 0; end != std::string_view::npos; name.remove_prefix(std::min(name.size(), end + 2))) {
    end = name.find(", ");
    parts.push_back(name.substr(0, end));
  }
  return parts;
}

}  // namespace

std::string model_in_words(std::string_view model) {
  std::string words(model.substr(0, kMaxModelBytes));
  for (char& letter : words)
    if (letter == ',' || static_cast<unsigned char>(letter) < ' ') letter = ' ';
  return words;
}

std::string hosts_in_words(std::span<const Rank> sizes) {
  std::map<Rank, Rank> counts;
  for (const Rank size : sizes) ++counts[size];
  std::vector<std::string> kinds;
  for (const auto& [size, count] : counts) kinds.push_back(std::to_string(count) + "x" + std::to_string(size));
  return joined(kinds, " ");
}

std::string machine_name(const CommunicatorOptions& options, const Hosts& hosts) {
  if (options.tune_file.empty()) return "";
  const Sharing sharing = sharing_of(hosts);
  const std::vector<Rank> domains = hosts.domains();
  std::string name = options.version + ", " + std::string(kHosts) + hosts_in_words(sizes_of(hosts.first_ranks())) +
                     ", " + sharing.words + " of " + processor();
  if (domains != hosts.first_ranks()) name += ", NUMA domains " + hosts_in_words(sizes_of(domains));
  name += ", " + ways_between(hosts);
  const bool shared_alike = sharing.alike && (sharing.first.empty() || is_regular(sharing.first));
  if (is_regular(hosts.first_ranks()) && is_regular(domains) && shared_alike) return name;
  return name + laid_out_as({hosts.first_ranks(), sharing.first, domains});
}

std::string links_in_words(const Topology& topology, std::span<const NodeId> gpus) {
  std::vector<std::string> all;
  std::map<std::string, Rank> counts;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    for (const NodePath& way : find_paths(topology, gpus[i], gpus.subspan(i + 1))) {
      char rate[32] = "";
      if (way.kind == PathKind::nvlink) std::snprintf(rate, sizeof rate, " %.3g GB/s", way.gbytes_per_s);
      ++counts[all.emplace_back(name(way.kind) + std::string(rate))];
    }
  }
  if (counts.empty()) return "none";
  if (counts.size() == 1) return all.front();
  std::vector<std::string> kinds;
  std::uint32_t code = 0;
  for (const auto& [kind, count] : counts) kinds.push_back(std::to_string(count) + " " + kind);
  for (const std::string& each : all) code = hashed(code, each + " ");
  return joined(kinds, " and ") + laid_out_as(code);
}

std::string links_in_words(const Hosts& hosts) {
  constexpr const char* kUnknown = "unknown";
  if (hosts.topology() == nullptr || !hosts.is_one_host() || hosts.joined()) return kUnknown;
  const Topology& topology = hosts.topology()->of(hosts.host_number(0));
  std::vector<NodeId> gpus;
  for (Rank rank = 0; rank < hosts.ranks(); ++rank) {
    const std::string bus_id = gpu_of(hosts.location(rank));
    if (bus_id.empty() || gpu_on(topology, bus_id) == kNoNode) return kUnknown;
    gpus.push_back(gpu_on(topology, bus_id));
  }
  return links_in_words(topology, gpus);
}

std::optional<NamedMachine> parse_machine_name(std::string_view name) {
  const std::vector<std::string_view> parts = parts_of(name);
  NamedMachine machine;
  if (parts.size() > 3 && parts[1].starts_with(kHosts) && parts[2].find(" on ") != std::string_view::npos) {
    machine.hosts = parts[1].substr(kHosts.size());
    machine.sharing = parts[2];
    machine.transport = parts[parts[3].starts_with("NUMA ") && parts.size() > 4 ? 4 : 3];
    return machine;
  }
  const auto links = std::find_if(parts.begin(), parts.end(), [](auto part) { return part.starts_with(kLinks); });
  if (parts.size() < 4 || links == parts.end()) return std::nullopt;
  const char* digits = parts[1].data();
  const auto [end, error] = std::from_chars(digits, digits + parts[1].size(), machine.ranks);
  if (error != std::errc() || !parts[1].substr(static_cast<std::size_t>(end - digits)).starts_with(" rank"))
    return std::nullopt;
  machine.on_devices = true;
  machine.links = name.substr(static_cast<std::size_t>(links->data() - name.data()) + kLinks.size());
  return machine;
}

}  // namespace tutti
