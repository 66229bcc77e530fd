// Settings from environment variables, read once. No other file of src reads the environment.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/log.h"
#include "src/base/path.h"

namespace tutti {

// Names and values, of the process or made up by a test.
class Environment {
 public:
  explicit Environment(std::map<std::string, std::string> variables) : variables_(std::move(variables)) {}
  static Environment of_process();

  std::optional<std::string> get(const std::string& name) const;  // Empty also if the value is empty.
  const std::map<std::string, std::string>& variables() const { return variables_; }

 private:
  std::map<std::string, std::string> variables_;
};

// A century, and still far from where nanoseconds overflow.
inline constexpr std::int64_t kLongestTimeoutMs = 100LL * 365 * 24 * 3600 * 1000;

// Whether slots of GPUs' lanes to other hosts lie in memory of the GPU.
enum class GpuDirect : std::uint8_t {
  automatic,  // Where the network card reaches it.
  off,
  on,  // Or it is an error.
};

// Which calls may change how they run by what they have taken before.
enum class Tune : std::uint8_t {
  off,
  exact,  // Calls whose result does not depend on the order of additions.
  all,
};

// The defaults here are those of the table in config.cc, which describes each variable.
struct Config {
  std::int64_t timeout_ms = 600'000;       // Longest wait of an operation; 0: none.
  std::int64_t init_timeout_ms = 120'000;  // Longest wait for ranks to join.
  double timeout_scale = 1.0;              // Already applied to the two above.
  std::string socket_ifname;
  std::string secret_file;
  LogLevel log = LogLevel::warn;
  std::string log_file;  // Pattern, see log_to_file(); empty: standard error.
  std::string algorithm;
  std::string protocol;
  std::string compression;              // Format of messages of floats; empty: as they are.
  double max_relative_error = 0;        // Instead: what the tuner takes within this; 0: no bound.
  bool compression_stochastic = false;  // These are rounded by random numbers;
  std::uint64_t compression_seed = 0;   // of this seed.
  bool nccls_algorithm = false;         // From NCCL_ALGO and NCCL_PROTO: without effect where they do not fit.
  bool nccls_protocol = false;
  std::string transport;
  bool encrypt = false;        // Encrypt TCP traffic;
  bool check_tcp = false;      // or only protected against alteration.
  std::string refused;         // Why no communicator is to be made: one of these, or the bound, makes no sense.
  std::string topo_file;       // Empty: what discovery finds.
  std::string topo_dump_file;  // Empty: none.
  std::uint32_t channels = 0;  // 0: the tuner's choice.
  bool verify = false;
  std::string tuner_plugin;
  Tune tune = Tune::off;
  bool deterministic = false;
  bool probe = true;
  std::string tune_file;
  Path p2p_level = Path::host_bridge;  // GPUs farther apart talk through host memory.
  bool p2p_disabled = false;           // All do.
  GpuDirect gpudirect = GpuDirect::automatic;
  // RDMA devices; see transports/verbs.h.
  bool ib_disabled = false;  // Unless they are asked for by name.
  std::string ib_hca;
  std::int32_t ib_gid_index = -1;  // The port's best.
  std::uint32_t ib_traffic_class = 0;
  std::uint32_t ib_timeout = 17;
  std::uint32_t ib_retry_count = 6;

  bool has_plugin() const { return !tuner_plugin.empty() && tuner_plugin != "none"; }
};

struct Variable {
  const char* name;         // "TUTTI_TIMEOUT_MS"
  const char* alias;        // NCCL's variable that is used if ours is not set, or null.
  const char* fallback;     // The default, as text.
  const char* group;        // Heading under which listings show it; rows of a group are adjacent in the table.
  const char* description;  // One line: noun phrase, unit, values, restriction. Listings add the default.
};
std::span<const Variable> variables();

// One line of a listing: where a value came from.
struct Setting {
  const Variable* variable;
  std::string value;
  std::string source;  // "default", or the name of the variable that was set.
};

// The process's, read at the first call, which also sets the log level and logs what was wrong.
const Config& config();
const std::vector<Setting>& settings();
// The environment at that moment: for variables that belong to others, such as a launcher's.
const Environment& environment();

struct ReadConfig {
  Config config;
  std::vector<Setting> settings;
  std::vector<std::string> warnings;  // Bad values, which leave the default, and similar_names names.
  std::vector<std::string> notes;     // Variables of NCCL without effect; logged at level info.
};
ReadConfig read_config(const Environment& environment);

}  // namespace tutti
