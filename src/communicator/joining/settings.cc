#include "src/communicator/joining/settings.h"

#include <unistd.h>

#include <algorithm>

#include "src/base/nccl_settings.h"
#include "src/bootstrap/address.h"
#include "src/bootstrap/launcher.h"
#include "src/bootstrap/secrets.h"
#include "src/communicator/call/forced.h"
#include "src/communicator/joining/network_choice.h"
#include "src/communicator/joining/own_host.h"

namespace tutti {
namespace {

Status check_interface(const std::string& ifname) { return ifname.empty() ? Status() : own_address(ifname).status(); }

// libnccl.so.2 reads these variables itself, and reports the same errors.
Status check_nccl_compression(const Environment& environment) {
  const auto value = [&](const char* rest) {
    return environment.get(std::string("TUTTI_NCCL_COMPRESS") + rest).value_or("");
  };
  const double bound = TUTTI_TRY(nccl_compression_bound(value("_MAX_RELATIVE_ERROR")));
  TUTTI_CHECK_OK(check_nccl_format_or_bound(value(""), bound));
  TUTTI_CHECK_OK(nccl_compression_min_bytes(value("_MIN_BYTES")).status());
  TUTTI_CHECK_OK(nccl_compressed_types(value("_TYPES")).status());
  TUTTI_CHECK_OK(nccl_compressed_collectives(value("_COLLECTIVES")).status());
  return check_compression_format("TUTTI_NCCL_COMPRESS", value(""));
}

// The loader searches a name without a slash in its folders.
Status check_library(const Environment& environment, const std::string& variable) {
  const std::string path = environment.get(variable).value_or("");
  if (path.find('/') == std::string::npos || ::access(path.c_str(), R_OK) == 0) return {};
  return system_error("read " + path + ", which " + variable + " names");
}

Status check_pytorch_path(const Environment& environment) {
  const std::string chosen = environment.get("TUTTI_PYTORCH_PATH").value_or("");
  if (chosen.empty() || chosen == "cpp" || chosen == "python") return {};
  return invalid_usage("TUTTI_PYTORCH_PATH is \"" + chosen + "\", but must be cpp or python");
}

// LL128 in NCCL_PROTO applies only to GPUs, so it is ignored on host memory.
std::string protocol_on_host_memory(const Config& config) {
  return config.protocol_is_from_nccl && config.protocol == "LL128" ? "" : config.protocol;
}

std::string why_autotuning_is_off(const Config& config) {
  if (config.deterministic) return "TUTTI_DETERMINISTIC is 1";
  if (config.has_plugin()) return "TUTTI_TUNER_PLUGIN chooses algorithms";
  if (!config.algorithm.empty() && config.algorithm != kCopyEngines)
    return std::string(config.algorithm_is_from_nccl ? "NCCL_ALGO" : "TUTTI_ALGORITHM") + " forces " + config.algorithm;
  if (!protocol_on_host_memory(config).empty())
    return std::string(config.protocol_is_from_nccl ? "NCCL_PROTO" : "TUTTI_PROTOCOL") + " forces " + config.protocol;
  return config.tune == Tune::off ? "TUTTI_TUNE is 0 (autotuning needs 1 or exact)" : "";
}

}  // namespace

std::vector<std::string> refused_settings(const Environment& environment, const Config& config) {
  const Status checks[] = {
      check_algorithm("TUTTI_ALGORITHM", config.algorithm),
      check_protocol("TUTTI_PROTOCOL", config.protocol),
      check_compression_format("TUTTI_COMPRESS", config.compression),
      check_compression_or_bound("TUTTI_COMPRESS and TUTTI_MAX_RELATIVE_ERROR", config.compression,
                                 config.max_relative_error),
      check_bounded_rounding("TUTTI_COMPRESS_ROUNDING and TUTTI_MAX_RELATIVE_ERROR",
                             config.compression_stochastic ? Rounding::stochastic : Rounding::nearest,
                             config.max_relative_error),
      check_requested_transport(config),
      check_secret_file(config.secret_file).during("reading TUTTI_SECRET_FILE"),
      check_interface(config.socket_ifname),
      config.topo_file.empty() ? Status() : own_location("").status(),
      find_launched_rank(environment).status(),
      check_root(environment)};
  std::vector<std::string> refused = config.refused;
  for (const Status& status : checks) {
    const bool said = std::find(refused.begin(), refused.end(), status.message()) != refused.end();
    if (!status.ok() && !said) refused.push_back(status.message());
  }
  return refused;
}

std::vector<std::string> refused_by_clients(const Environment& environment) {
  std::vector<std::string> refused;
  for (const Status& status : {check_nccl_memory(environment.get("TUTTI_NCCL_MEMORY").value_or("")),
                               check_nccl_compression(environment), check_library(environment, "TUTTI_NCCL_FALLBACK"),
                               check_library(environment, "TUTTI_LIBRARY"), check_pytorch_path(environment)})
    if (!status.ok()) refused.push_back(status.message());
  return refused;
}

std::vector<std::string> refused_on_host_memory(const Config& config) {
  std::vector<std::string> refused;
  for (const Status& status :
       {check_on_host_memory(protocol_on_host_memory(config), 0), check_on_host_memory("", config.channels)})
    if (!status.ok()) refused.push_back(status.message());
  return refused;
}

std::string ineffective_tuning(const Config& config) {
  const std::string why = why_autotuning_is_off(config);
  const bool tunes = config.tune != Tune::off, keeps = !config.tune_file.empty();
  if (why.empty() || (!tunes && !keeps)) return "";
  if (tunes && keeps) return "TUTTI_TUNE and TUTTI_TUNE_FILE have no effect: " + why;
  return (tunes ? "TUTTI_TUNE" : "TUTTI_TUNE_FILE") + (" has no effect: " + why);
}

}  // namespace tutti
