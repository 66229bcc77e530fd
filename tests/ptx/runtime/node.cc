#include "tests/ptx/runtime/node.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "src/base/config.h"
#include "tests/ptx/runtime/errors.h"

namespace tutti::cudart {
namespace {

constexpr int kMaxDevices = 16;

// Returns the position of a variable's value in `values`, or `fallback` if the variable is unset. Aborts on other
// values.
std::size_t choice(const Environment& environment, const char* name, std::initializer_list<const char*> values,
                   std::size_t fallback) {
  const auto value = environment.get(name);
  if (!value) return fallback;
  const auto found = std::find(values.begin(), values.end(), *value);
  if (found != values.end()) return static_cast<std::size_t>(found - values.begin());
  std::string known;
  for (const char* each : values) known += std::string(" ") + each;
  report("%s=%s is unknown; valid values:%s", name, value->c_str(), known.c_str());
  std::abort();
}

int number(const Environment& environment, const char* name, int fallback, int max) {
  const auto value = environment.get(name);
  return value ? std::clamp(std::atoi(value->c_str()), 1, max) : fallback;
}

constexpr std::string_view kPrefix = "TUTTI_PTX_";
constexpr std::string_view kSettings[] = {"CAPABILITY", "COUNTS",   "DEADLOCK_MS", "DEVICES",    "DRIVER",
                                          "EXECUTED",   "FILES",    "LINKS",       "MPS",        "MULTIPROCESSORS",
                                          "MUTANT",     "PAGEABLE", "PROGRAMS",    "RACES",      "SEED",
                                          "WAITS",      "WEAK",     "MULTICAST",   "MEMORY_MIB", "FABRIC"};

void report_unknown(const Environment& environment) {
  for (const auto& [name, value] : environment.variables()) {
    if (!name.starts_with(kPrefix)) continue;
    const std::string_view rest = std::string_view(name).substr(kPrefix.size());
    if (std::find(std::begin(kSettings), std::end(kSettings), rest) != std::end(kSettings)) continue;
    report("%s is no setting and has no effect; tests/ptx/runtime/README.md lists the settings", name.c_str());
  }
}

NodeOptions from(const Environment& environment) {
  report_unknown(environment);
  NodeOptions options;
  options.devices = number(environment, "TUTTI_PTX_DEVICES", options.devices, kMaxDevices);
  options.links = static_cast<Links>(choice(environment, "TUTTI_PTX_LINKS", {"nvlink", "pcie", "mixed"}, 0));
  options.waits = static_cast<AllocationWaits>(choice(environment, "TUTTI_PTX_WAITS", {"none", "peers", "all"}, 1));
  options.mps = choice(environment, "TUTTI_PTX_MPS", {"0", "1"}, 1) == 1;
  options.pageable = choice(environment, "TUTTI_PTX_PAGEABLE", {"0", "1"}, 0) == 1;
  options.multiprocessors = number(environment, "TUTTI_PTX_MULTIPROCESSORS", options.multiprocessors, 1024);
  options.memory_mib = number(environment, "TUTTI_PTX_MEMORY_MIB", options.memory_mib, options.memory_mib);
  constexpr int kCapabilities[] = {80, 90, 100};
  options.capability = kCapabilities[choice(environment, "TUTTI_PTX_CAPABILITY", {"80", "90", "100"}, 1)];
  options.programs = environment.get("TUTTI_PTX_PROGRAMS").value_or("");
  options.multicast = static_cast<MulticastSupport>(
      choice(environment, "TUTTI_PTX_MULTICAST", {"all", "none", "but_last", "last_fails", "last_binds_once"}, 0));
  options.files =
      static_cast<FileExport>(choice(environment, "TUTTI_PTX_FILES", {"allowed", "unsupported", "refused"}, 0));
  options.fabric = static_cast<Fabric>(choice(
      environment, "TUTTI_PTX_FABRIC", {"none", "rack", "two_racks", "refused_in_two", "refused", "unopened"}, 0));
  if (options.capability < 90) options.multicast = MulticastSupport::none;
  if (const auto driver = environment.get("TUTTI_PTX_DRIVER")) options.driver = std::atoi(driver->c_str());
  options.queues = number(environment, "CUDA_DEVICE_MAX_CONNECTIONS", options.queues, 32);
  options.loads_eagerly = environment.get("CUDA_MODULE_LOADING").value_or("LAZY") == "EAGER";
  return options;
}

}  // namespace

const NodeOptions& node_options() {
  static const NodeOptions options = from(Environment::of_process());
  return options;
}

bool supports_multicast(int device) {
  const MulticastSupport support = node_options().multicast;
  if (support == MulticastSupport::but_last) return device + 1 < node_options().devices;
  return support != MulticastSupport::none;
}

bool linked(int device, int peer) {
  if (device == peer) return false;
  switch (node_options().links) {
    case Links::nvlink: return true;
    case Links::pcie: return false;
    case Links::mixed: return device / 2 == peer / 2;
  }
  return false;
}

}  // namespace tutti::cudart
