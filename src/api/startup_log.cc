#include "src/api/startup_log.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <set>

#include "src/base/config.h"
#include "src/base/counted.h"
#include "src/base/duration.h"
#include "src/base/log.h"
#include "src/communicator/control/mesh.h"

namespace tutti {
namespace {

constexpr std::size_t kLineBytes = 800;  // log() cuts lines at about 1,000 bytes.

// With TUTTI_TRANSPORT=tcp each rank counts as a host of its own, so machines are counted instead.
std::size_t count_hosts(const Communicator& communicator, const Hosts& hosts) {
  std::set<Rank> distinct;
  if (!communicator.options().over_network()) {
    distinct.insert(hosts.first_ranks().begin(), hosts.first_ranks().end());
  } else {
    for (const Hosts::MachineShare& rank : hosts.machine_shares()) distinct.insert(rank.machine);
  }
  return std::max<std::size_t>(distinct.size(), 1);
}

std::string describe_transports(const Communicator& communicator, const Hosts& hosts, std::size_t host_count) {
  const CommunicatorOptions& options = communicator.options();
  const char* local = options.memory == Memory::cuda ? "GPU memory and shared memory" : "shared memory";
  std::string text = "within a host " + (options.over_network() ? hosts.transport() : std::string(local));
  if (host_count > 1) text += ", between hosts " + hosts.transport();
  const bool plain = !config().encrypt && !config().check_tcp;
  return text + "; TCP encryption " + (config().encrypt ? "on" : "off") +
         (plain || config().encrypt ? "" : ", checksums on");
}

std::string describe_compression(const CommunicatorOptions& options) {
  char bound[64];
  std::snprintf(bound, sizeof bound, "chosen per call, error at most %g", options.max_relative_error);
  if (options.max_relative_error > 0) return bound;
  if (options.compression.empty() || options.compression == "raw") return "raw";
  return options.compression +
         (options.compression_rounding.rounding == Rounding::stochastic ? " (stochastic rounding)" : "");
}

std::string describe_forced(const std::string& name, bool from_nccl, const char* ours, const char* nccls) {
  if (name.empty()) return "chosen per call";
  return name + " (forced by " + (from_nccl ? nccls : ours) + ")";
}

const char* describe_tuning(Tune tune) {
  if (tune == Tune::off) return "off";
  return tune == Tune::exact ? "exact (float reductions are not tuned)" : "on";
}

void log_options(const CommunicatorOptions& options) {
  log(LogLevel::info, "compression %s; algorithm %s; protocol %s; autotuning %s; tuner plugin %s; timeout %s",
      describe_compression(options).c_str(),
      describe_forced(options.algorithm, options.algorithm_is_from_nccl, "TUTTI_ALGORITHM or options", "NCCL_ALGO")
          .c_str(),
      describe_forced(options.protocol, options.protocol_is_from_nccl, "TUTTI_PROTOCOL or options", "NCCL_PROTO")
          .c_str(),
      describe_tuning(options.tune), options.has_plugin() ? options.tuner_plugin.c_str() : "none",
      options.timeout_ms > 0 ? describe_ms(options.timeout_ms).c_str() : "none");
}

// Values as they were set. TUTTI_SECRET_FILE is the name of a file; its content is not read here.
void log_variables(Rank rank) {
  static std::atomic_flag logged;
  if (logged.test_and_set()) return;
  const std::string head = "rank " + std::to_string(rank) + ", variables:";
  std::string line = head;
  for (const Setting& setting : settings()) {
    if (setting.source == "default") continue;
    const std::string entry = " " + setting.source + "=" + environment().get(setting.source).value_or(setting.value);
    if (line.size() > head.size() && line.size() + entry.size() > kLineBytes) {
      log(LogLevel::info, "%s", line.c_str());
      line = head;
    }
    line += entry;
  }
  if (line == head) line += " none";
  log(LogLevel::info, "%s", line.c_str());
}

}  // namespace

void log_created(const Communicator& communicator, const std::string& created_by) {
  if (!logs(LogLevel::info)) return;
  const CommunicatorOptions& options = communicator.options();
  const Hosts hosts = communicator.mesh().hosts();
  const std::size_t host_count = count_hosts(communicator, hosts);
  const std::string name = options.name.empty() ? "" : " of \"" + options.name + "\"";
  log(LogLevel::info, "Tutti %s: rank %u of %u%s on %s memory, %s, created by %s", options.version.c_str(),
      communicator.rank(), communicator.ranks(), name.c_str(), options.memory == Memory::cuda ? "CUDA" : "host",
      counted(host_count, "host").c_str(), created_by.c_str());
  if (communicator.rank() == 0) {
    log(LogLevel::info, "transport: %s", describe_transports(communicator, hosts, host_count).c_str());
    log_options(options);
  }
  log_variables(communicator.rank());
}

}  // namespace tutti
