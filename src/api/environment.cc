#include "src/api/environment.h"

#include <string>

#include "include/tutti/tutti.h"
#include "src/base/config.h"

namespace tutti {

CommunicatorOptions environment_options() {
  const Config& from = config();
  CommunicatorOptions options;
  options.timeout_ms = from.timeout_ms;
  options.init_timeout_ms = from.init_timeout_ms;
  options.algorithm = from.algorithm;
  options.protocol = from.protocol;
  options.algorithm_is_from_nccl = from.algorithm_is_from_nccl;
  options.protocol_is_from_nccl = from.protocol_is_from_nccl;
  options.transport = from.transport;
  options.compression = from.compression;
  options.max_relative_error = from.max_relative_error;
  options.compression_rounding = {from.compression_stochastic ? Rounding::stochastic : Rounding::nearest,
                                  from.compression_seed};
  options.channels = from.channels;
  options.tuner_plugin = from.tuner_plugin;
  options.deterministic = from.deterministic;
  options.tune = from.deterministic ? Tune::off : from.tune;
  options.wait = from.wait;
  options.probes = from.probe && !from.deterministic;
  if (options.tune != Tune::off) options.tune_file = from.tune_file;
  options.version = std::to_string(TUTTI_VERSION_MAJOR) + "." + std::to_string(TUTTI_VERSION_MINOR) + "." +
                    std::to_string(TUTTI_VERSION_PATCH);
  return options;
}

RendezvousOptions environment_rendezvous() {
  RendezvousOptions options;
  options.socket_ifname = config().socket_ifname;
  options.secret_file = config().secret_file;
  return options;
}

Result<std::unique_ptr<Communicator>> create_launched(const LaunchedRank& launched,
                                                      const CommunicatorOptions& options) {
  if (launched.launcher.empty()) {
    auto alone = TUTTI_TRY(Communicator::create_all(1, options));
    return std::move(alone.front());
  }
  const Watch watch = {.deadline = Deadline::after_ms(options.init_timeout_ms), .abort = options.abort};
  auto id = share_unique_id(launched, environment_rendezvous(), watch);
  if (!id.ok()) return std::move(id).status();
  return Communicator::create(id.value(), launched.rank, launched.ranks, options);
}

}  // namespace tutti
