#include "tools/tutti/doctor_settings.h"

#include <vector>

#include "src/base/config.h"
#include "src/communicator/device/listing.h"
#include "src/communicator/joining/settings.h"

namespace tutti::tool {
namespace {

std::string listed(const std::vector<std::string>& sentences) {
  if (sentences.size() == 1) return " " + sentences.front();
  std::string all;
  for (const std::string& sentence : sentences) all += "\n  " + sentence;
  return all;
}

bool has_devices() {
  const Result<std::vector<std::string>> devices = list_devices();
  return devices.ok() && !devices.value().empty();
}

}  // namespace

std::string refused_here(std::vector<std::string>& warnings) {
  const Config& from = config();
  if (from.protocol_is_from_nccl && from.protocol == "LL128")
    warnings.emplace_back("NCCL_PROTO has no effect on host memory: LL128 is for GPUs");
  std::vector<std::string> refused = refused_settings(environment(), from);
  const std::vector<std::string> on_host_memory = refused_on_host_memory(from);
  if (has_devices()) {
    if (!on_host_memory.empty())
      warnings.push_back("no communicator can be created on host memory:" + listed(on_host_memory));
  } else {
    refused.insert(refused.end(), on_host_memory.begin(), on_host_memory.end());
  }
  return listed(refused);
}

std::string refused_by_clients_here() {
  const std::vector<std::string> refused = refused_by_clients(environment());
  return refused.empty() ? "" : "libnccl.so.2 or the Python package rejects:" + listed(refused);
}

}  // namespace tutti::tool
