#include "src/bootstrap/slurm.h"

#include <algorithm>

#include "src/base/read_number.h"

namespace tutti {
namespace {

constexpr std::uint64_t kFirstPort = 10'000;
constexpr std::uint64_t kPorts = 20'000;
constexpr std::uint64_t kStepStride = 1'009;  // A prime, so that steps of consecutive jobs rarely share a port.
constexpr const char* kCure = ": set TUTTI_ROOT to host:port, where rank 0 is to listen";

Result<std::uint64_t> number_in(const Environment& environment, const char* name, const char* fallback) {
  const std::optional<std::string> value = environment.get(name);
  if (!value && fallback == nullptr)
    return invalid_usage(std::string("the ranks of Slurm are on several hosts, and ") + name + " is not set" + kCure);
  const std::string text = value.value_or(fallback == nullptr ? "" : fallback);
  std::uint64_t number = 0;
  if (read_number(text, number)) return number;
  return invalid_usage(std::string(name) + " is \"" + text + "\", but must be a whole number" + kCure);
}

}  // namespace

std::optional<std::string> first_host(std::string_view list) {
  std::string host;
  while (!list.empty() && list.front() != ',') {
    const std::size_t open = std::min(list.find_first_of("[],"), list.size());
    host += list.substr(0, open);
    list.remove_prefix(open);
    if (list.empty() || list.front() == ',') break;
    const std::size_t close = list.find(']');
    if (list.front() == ']' || close == std::string_view::npos) return std::nullopt;
    const std::string_view numbers = list.substr(1, close - 1);
    const std::string_view first = numbers.substr(0, numbers.find_first_of(",-"));
    if (first.empty()) return std::nullopt;
    host += first;
    list.remove_prefix(close + 1);
  }
  return host.empty() ? std::nullopt : std::optional(std::move(host));
}

Result<SlurmRoot> slurm_root(const Environment& environment) {
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"}) {
    const std::optional<std::string> list = environment.get(name);
    if (!list) continue;
    std::optional<std::string> host = first_host(*list);
    if (!host)
      return invalid_usage(std::string(name) + " is \"" + *list +
                           "\", but must be a list of hosts such as node[01-04]" + kCure);
    const std::uint64_t job = TUTTI_TRY(number_in(environment, "SLURM_JOB_ID", nullptr));
    const std::uint64_t step = TUTTI_TRY(number_in(environment, "SLURM_STEP_ID", "0"));
    const std::uint64_t port = kFirstPort + (job + step * kStepStride) % kPorts;
    return SlurmRoot{std::move(*host), static_cast<std::uint16_t>(port), name};
  }
  return invalid_usage(std::string("the ranks of Slurm are on several hosts, and SLURM_JOB_NODELIST is not set") +
                       kCure);
}

}  // namespace tutti
