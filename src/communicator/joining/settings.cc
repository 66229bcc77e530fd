#include "src/communicator/joining/settings.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>

#include "src/bootstrap/address.h"
#include "src/bootstrap/launcher.h"
#include "src/bootstrap/secrets.h"
#include "src/communicator/call/forced.h"
#include "src/communicator/joining/network_choice.h"
#include "src/communicator/joining/own_host.h"

namespace tutti {
namespace {

Status check_interface(const std::string& ifname) { return ifname.empty() ? Status() : own_address(ifname).status(); }

// libnccl.so.2 reads this variable itself, and reports the same error.
Status check_nccl_memory(const Environment& environment) {
  const std::string memory = environment.get("TUTTI_NCCL_MEMORY").value_or("cuda");
  if (memory == "cuda" || memory == "host") return {};
  return invalid_usage("TUTTI_NCCL_MEMORY is \"" + memory + "\", but must be cuda, the default, or host");
}

// libnccl.so.2 reads these variables itself.
Status check_list(const Environment& environment, const std::string& variable,
                  std::initializer_list<const char*> known) {
  const std::string value = environment.get(variable).value_or(*known.begin());
  std::string wanted;
  for (const char* one : known) wanted.append(wanted.empty() ? "" : ", ").append(one);
  for (std::size_t at = 0; at <= value.size();) {
    const std::size_t end = std::min(value.find(',', at), value.size());
    if (std::find(known.begin(), known.end(), value.substr(at, end - at)) == known.end())
      return invalid_usage(variable + " is \"" + value + "\", but must be a list of " + wanted);
    at = end + 1;
  }
  return {};
}

Status check_nccl_compression_bound(const Environment& environment) {
  const std::string text = environment.get("TUTTI_NCCL_COMPRESS_MAX_RELATIVE_ERROR").value_or("0");
  double bound = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bound);
  if (error != std::errc() || end != text.data() + text.size() || !(bound >= 0 && bound < 1))
    return invalid_usage("TUTTI_NCCL_COMPRESS_MAX_RELATIVE_ERROR is \"" + text +
                         "\", but must be 0, or a number above 0 and below 1");
  if (bound == 0 || environment.get("TUTTI_NCCL_COMPRESS").value_or("").empty()) return {};
  return invalid_usage(
      "TUTTI_NCCL_COMPRESS and TUTTI_NCCL_COMPRESS_MAX_RELATIVE_ERROR are both set; set only one of them");
}

Status check_nccl_compression(const Environment& environment) {
  TUTTI_CHECK_OK(check_nccl_compression_bound(environment));
  const std::string bytes = environment.get("TUTTI_NCCL_COMPRESS_MIN_BYTES").value_or("0");
  std::uint64_t parsed = 0;
  const auto [end, error] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), parsed);
  if (error != std::errc() || end != bytes.data() + bytes.size())
    return invalid_usage("TUTTI_NCCL_COMPRESS_MIN_BYTES is \"" + bytes + "\", but must be a whole number of bytes");
  TUTTI_CHECK_OK(check_list(environment, "TUTTI_NCCL_COMPRESS_TYPES", {"float32", "float16", "bfloat16"}));
  TUTTI_CHECK_OK(check_list(
      environment, "TUTTI_NCCL_COMPRESS_COLLECTIVES",
      {"all_reduce", "reduce_scatter", "reduce", "all_gather", "broadcast", "gather", "scatter", "all_to_all"}));
  return check_compression_format("TUTTI_NCCL_COMPRESS", environment.get("TUTTI_NCCL_COMPRESS").value_or(""));
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
  for (const Status& status : {check_nccl_memory(environment), check_nccl_compression(environment),
                               check_library(environment, "TUTTI_NCCL_FALLBACK"),
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
