// Settings from environment variables, read once. No other code reads the environment.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/log.h"
#include "src/base/p2p_level.h"

namespace tutti {

// Names and values of environment variables, of the process or of a test.
class Environment {
 public:
  explicit Environment(std::map<std::string, std::string> variables) : variables_(std::move(variables)) {}
  static Environment of_process();

  std::optional<std::string> get(const std::string& name) const;  // nullopt if unset or empty.
  const std::map<std::string, std::string>& variables() const { return variables_; }

 private:
  std::map<std::string, std::string> variables_;
};

// Maximum timeout: a century, which does not overflow in nanoseconds.
inline constexpr std::int64_t kMaxTimeoutMs = 100LL * 365 * 24 * 3600 * 1000;

// Whether slots of lanes between GPUs of different hosts lie in GPU memory.
enum class GpuDirect : std::uint8_t {
  automatic,  // If the network card can access GPU memory.
  off,
  on,  // Fails if it cannot.
};

// Calls whose execution autotuning may change.
enum class Tune : std::uint8_t {
  off,
  exact,  // Calls whose result does not depend on the order of the operands.
  all,
};

// How a rank on host memory waits for its peers.
enum class WaitMode : std::uint8_t {
  automatic,  // Spins for about 50 us, or 10 us if other threads need the CPU, and then sleeps.
  spin,
  sleep,
};

// Returns whether a value of TUTTI_TUNER_PLUGIN names a plugin.
inline bool names_plugin(const std::string& tuner_plugin) { return !tuner_plugin.empty() && tuner_plugin != "none"; }

// Defaults equal those of the table in config_table.cc, which describes each variable.
struct Config {
  std::int64_t timeout_ms = 600'000;       // Timeout of an operation; 0: none.
  std::int64_t init_timeout_ms = 120'000;  // Timeout for all ranks to join; 0: none.
  double timeout_scale = 1.0;              // Already applied to timeout_ms and init_timeout_ms.
  std::string socket_ifname;
  std::string secret_file;
  LogLevel log = LogLevel::warn;
  std::string log_file;  // Pattern for log_to_file(); empty: standard error.
  std::string algorithm;
  std::string protocol;
  std::string compression;              // Compression format of float messages; empty: none.
  double max_relative_error = 0;        // Error bound for the tuner's choice of a format; 0: no bound.
  bool compression_stochastic = false;  // Round randomly when compressing.
  std::uint64_t compression_seed = 0;   // Seed for random rounding.
  bool algorithm_is_from_nccl = false;  // `algorithm` comes from NCCL_ALGO: ignored where it is not supported.
  bool protocol_is_from_nccl = false;
  std::string transport;
  std::string net_plugin;            // Network plugins of NCCL; see transports/net_plugin.h.
  bool encrypt = false;              // Encrypt TCP traffic between hosts.
  bool check_tcp = false;            // Authenticate TCP traffic without encrypting it.
  std::vector<std::string> refused;  // Errors of TUTTI_ variables. If there are any, communicators are not created.
  std::string topo_file;             // Empty: discover the topology.
  std::string topo_dump_file;        // Empty: no dump.
  std::uint32_t channels = 0;        // 0: chosen by the tuner.
  bool verify = false;
  std::string tuner_plugin;
  Tune tune = Tune::off;
  bool deterministic = false;
  bool nvls = true;   // Bind memory to multicast objects, so that NVSwitches add and multicast.
  bool mnnvl = true;  // Hosts of an NVLink domain access each other's GPU memory.
  WaitMode wait = WaitMode::automatic;
  bool probe = true;
  std::string tune_file;
  P2pLevel p2p_level = P2pLevel::phb;  // GPUs farther apart communicate through host memory.
  bool p2p_disabled = false;           // All GPUs communicate through host memory.
  GpuDirect gpudirect = GpuDirect::automatic;
  // RDMA devices; see transports/verbs.h.
  bool ib_disabled = false;  // Do not use RDMA unless `transport` names it.
  std::string ib_hca;
  std::int32_t ib_gid_index = -1;  // -1: the best one of the port.
  std::uint32_t ib_traffic_class = 0;
  std::uint32_t ib_timeout = 17;
  std::uint32_t ib_retry_count = 6;
  std::uint32_t ib_queue_pairs = 2;

  bool has_plugin() const { return names_plugin(tuner_plugin); }
};

struct Variable {
  const char* name;          // "TUTTI_TIMEOUT_MS"
  const char* alias;         // NCCL's variable that is used if ours is not set, or null.
  const char* default_text;  // The default, as text.
  const char* group;         // Heading under which listings show it; rows of a group are adjacent in the table.
  const char* description;   // One line: noun phrase, unit, values, restriction. Listings add the default.
};
std::span<const Variable> variables();

// A setting for listings, with the origin of its value.
struct Setting {
  const Variable* variable;
  std::string value;
  std::string source;    // "default", or the name of the variable that was set.
  bool refused = false;  // The value is invalid, so no communicator can be created.
};

// Settings of the process. The first call reads them, sets the log level and logs warnings. Thread-safe.
const Config& config();
const std::vector<Setting>& settings();
// Environment at the time of the first config() call, for variables of others, such as launchers.
const Environment& environment();

struct ReadConfig {
  Config config;
  std::vector<Setting> settings;
  std::vector<std::string> warnings;  // Invalid values of NCCL_ variables, and unknown TUTTI_ variables.
  std::vector<std::string> notes;     // NCCL variables without effect; logged at level info.
};
ReadConfig read_config(const Environment& environment);

}  // namespace tutti
