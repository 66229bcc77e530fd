#include "src/communicator/joining/settings.h"

#include <algorithm>

#include "src/bootstrap/address.h"
#include "src/bootstrap/launcher.h"
#include "src/bootstrap/secrets.h"
#include "src/communicator/forced.h"
#include "src/communicator/joining/own_host.h"

namespace tutti {
namespace {

Status check_interface(const std::string& ifname) { return ifname.empty() ? Status() : own_address(ifname).status(); }

// libnccl.so.2 reads it by itself, and says the same.
Status check_nccl_memory(const Environment& environment) {
  const std::string memory = environment.get("TUTTI_NCCL_MEMORY").value_or("cuda");
  if (memory == "cuda" || memory == "host") return {};
  return invalid_usage("TUTTI_NCCL_MEMORY is \"" + memory + "\", but must be cuda, the default, or host");
}

}  // namespace

std::vector<std::string> refused_settings(const Environment& environment, const Config& config) {
  const Status checks[] = {
      check_algorithm("TUTTI_ALGORITHM", config.algorithm),
      check_protocol("TUTTI_PROTOCOL", config.protocol),
      check_wire_format("TUTTI_WIRE", config.wire),
      check_wire_or_bound("TUTTI_WIRE and TUTTI_MAX_RELATIVE_ERROR", config.wire, config.max_relative_error),
      check_transport("TUTTI_TRANSPORT", config.transport),
      check_nccl_memory(environment),
      config.refused.empty() ? Status() : invalid_usage(config.refused),
      check_secret_file(config.secret_file).during("reading TUTTI_SECRET_FILE"),
      check_interface(config.socket_ifname),
      config.topo_file.empty() ? Status() : own_location("").status(),
      find_launched_rank(environment).status(),
      check_root(environment)};
  std::vector<std::string> refused;
  for (const Status& status : checks) {
    const bool said = std::find(refused.begin(), refused.end(), status.message()) != refused.end();
    if (!status.ok() && !said) refused.push_back(status.message());
  }
  return refused;
}

}  // namespace tutti
