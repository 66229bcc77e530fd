// Checks the options of a program and merges them over inherited ones.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>

#include "src/api/call_entry.h"
#include "src/api/on_device.h"
#include "src/base/config.h"
#include "src/base/protocol.h"
#include "src/base/read_number.h"
#include "src/communicator/call/forced.h"

namespace tutti {
namespace {

struct StructNames {
  const char* size;         // The field in messages: "options.size".
  const char* initializer;  // "TUTTI_COMM_OPTIONS_DEFAULT"
};

// Maximum size of a struct of options in any version. A larger size is that of a struct without an initializer.
constexpr std::size_t kMaxStructBytes = 4096;

// Copies the fields that this version has over `options`, which holds the defaults. The caller's header determines
// given.size. Returns an error for an impossible size, and for a struct of a newer version with a field set that this
// version does not know.
template <typename Options>
Status copy_known(const Options& given, std::size_t first_version_bytes, const StructNames& names, Options& options) {
  const std::string found = std::string(names.size) + " is " + std::to_string(given.size);
  if (given.size < std::min(first_version_bytes, sizeof options)) {
    return invalid_argument(found + ", but must be at least " +
                            std::to_string(std::min(first_version_bytes, sizeof options)) +
                            ": initialize the struct with " + names.initializer);
  }
  if (given.size > kMaxStructBytes)
    return invalid_argument(found + ": initialize the struct with " + names.initializer);
  const auto* bytes = reinterpret_cast<const char*>(&given);
  const std::size_t known = std::min(given.size, sizeof options);
  if (std::any_of(bytes + known, bytes + given.size, [](char byte) { return byte != 0; })) {
    return unsupported(found + ", and a field behind byte " + std::to_string(known) +
                       " is set: the program was built against a newer tutti than this, " +
                       std::to_string(TUTTI_VERSION_MAJOR) + "." + std::to_string(TUTTI_VERSION_MINOR));
  }
  std::memcpy(&options, &given, known);
  return {};
}

// Sets empty texts to null, which means unset.
void forget_empty(std::initializer_list<const char**> texts) {
  for (const char** text : texts) {
    if (*text != nullptr && **text == '\0') *text = nullptr;
  }
}

Result<tutti_comm_options> known_options(const tutti_comm_options& given) {
  constexpr std::size_t first_version_bytes = 80;
  static_assert(sizeof given >= first_version_bytes || sizeof(void*) != 8);
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  TUTTI_CHECK_OK(copy_known(given, first_version_bytes, {"options.size", "TUTTI_COMM_OPTIONS_DEFAULT"}, options));
  forget_empty({&options.name, &options.memory, &options.compression, &options.compression_rounding, &options.wait});
  return options;
}

Result<tutti_tuning_options> known_tuning(const tutti_tuning_options* given) {
  constexpr std::size_t first_version_bytes = 48;
  static_assert(sizeof *given >= first_version_bytes || sizeof(void*) != 8);
  tutti_tuning_options tuning = TUTTI_TUNING_OPTIONS_DEFAULT;
  if (given == nullptr) return tuning;
  TUTTI_CHECK_OK(
      copy_known(*given, first_version_bytes, {"options.tuning->size", "TUTTI_TUNING_OPTIONS_DEFAULT"}, tuning));
  forget_empty({&tuning.algorithm, &tuning.protocol, &tuning.transport});
  return tuning;
}

// Clamps to the longest timeout that a deadline can represent.
Result<std::int64_t> timeout_of(const char* option, std::int64_t given, std::int64_t inherited) {
  if (given < -1) {
    return invalid_argument(std::string("options.") + option + " is " + std::to_string(given) +
                            ": pass a time, 0 for the default, or -1 for none");
  }
  return given == 0 ? inherited : std::min(given, kMaxTimeoutMs);
}

// Accepts "host", "cuda" and "cuda:1".
Status set_memory(const char* given, CommunicatorOptions& merged) {
  if (given == nullptr) return {};
  const std::string_view name = given;
  const std::string_view prefix = "cuda:";
  merged.device = kCurrentDevice;
  merged.memory = name == "host" ? Memory::host : Memory::cuda;
  if (name == "host" || name == "cuda") return {};
  if (name.starts_with(prefix) && read_number(name.substr(prefix.size()), merged.device) && merged.device >= 0)
    return {};
  return invalid_argument("options.memory is \"" + std::string(name) +
                          "\": pass \"host\", \"cuda\", \"cuda:\" and the number of a GPU, or null");
}

Status set_wait(const char* given, CommunicatorOptions& merged) {
  if (given == nullptr) return {};
  const std::string_view name = given;
  if (name != "auto" && name != "spin" && name != "sleep")
    return invalid_argument("options.wait is \"" + std::string(name) +
                            "\": pass \"auto\", \"spin\", \"sleep\", or null");
  merged.wait = name == "auto" ? WaitMode::automatic : name == "spin" ? WaitMode::spin : WaitMode::sleep;
  return {};
}

Status set_traffic_class(std::uint64_t given, CommunicatorOptions& merged) {
  constexpr std::uint32_t kMax = 255;
  if (given > kMax)
    return invalid_argument("options.traffic_class is " + std::to_string(given) +
                            ": pass 1 to 255, or 0 for the default");
  if (given != 0) merged.traffic_class = static_cast<std::uint8_t>(given);
  return {};
}

// A format and a bound on the error exclude each other. A given one replaces an inherited other one.
Status bound_error(const tutti_comm_options& given, CommunicatorOptions& merged) {
  const double bound = given.max_relative_error;
  if (!(bound >= 0 && bound < 1))
    return invalid_argument("options.max_relative_error is " + (std::isnan(bound) ? "NaN" : std::to_string(bound)) +
                            ": pass a number above 0 and below 1, such as 0.01, or 0 for none");
  if (bound > 0 && given.compression == nullptr) merged.compression = "";
  if (bound == 0 && given.compression != nullptr) merged.max_relative_error = 0;
  if (bound > 0) merged.max_relative_error = bound;
  return check_compression_or_bound(
      bound > 0 ? "options.compression and options.max_relative_error" : "TUTTI_COMPRESS and TUTTI_MAX_RELATIVE_ERROR",
      merged.compression, merged.max_relative_error);
}

Status set_compression(const tutti_comm_options& given, CommunicatorOptions& merged) {
  if (given.compression != nullptr) merged.compression = given.compression;
  TUTTI_CHECK_OK(check_compression_format(given.compression != nullptr ? "options.compression" : "TUTTI_COMPRESS",
                                          merged.compression));
  TUTTI_CHECK_OK(bound_error(given, merged));
  if (given.compression_rounding != nullptr)
    merged.compression_rounding.rounding =
        TUTTI_TRY(parse_rounding("options.compression_rounding", given.compression_rounding));
  if (given.compression_seed != 0) merged.compression_rounding.seed = given.compression_seed;
  const bool requested = given.compression_rounding != nullptr || given.max_relative_error > 0;
  return check_bounded_rounding(requested ? "options.compression_rounding and options.max_relative_error"
                                          : "TUTTI_COMPRESS_ROUNDING and TUTTI_MAX_RELATIVE_ERROR",
                                merged.compression_rounding.rounding, merged.max_relative_error);
}

// Inherited names come from the environment, unchecked, or from a communicator, checked.
Status set_tuning(const tutti_tuning_options& given, CommunicatorOptions& merged) {
  if (given.algorithm != nullptr) merged.algorithm = given.algorithm;
  if (given.protocol != nullptr) merged.protocol = canonical_protocol(given.protocol);
  if (given.algorithm != nullptr) merged.algorithm_is_from_nccl = false;
  if (given.protocol != nullptr) merged.protocol_is_from_nccl = false;
  if (given.transport != nullptr) merged.transport = given.transport;
  if (given.channels != 0) merged.channels = given.channels;
  if (given.min_channels != 0) merged.min_channels = given.min_channels;
  if (given.max_channels != 0) merged.max_channels = given.max_channels;
  if (merged.max_channels != 0 && merged.min_channels > merged.max_channels)
    return invalid_argument("options.tuning->min_channels is " + std::to_string(merged.min_channels) +
                            ", more than max_channels, " + std::to_string(merged.max_channels));
  TUTTI_CHECK_OK(
      check_transport(given.transport != nullptr ? "options.tuning->transport" : "TUTTI_TRANSPORT", merged.transport));
  TUTTI_CHECK_OK(
      check_algorithm(given.algorithm != nullptr ? "options.tuning->algorithm" : "TUTTI_ALGORITHM", merged.algorithm));
  return check_protocol(given.protocol != nullptr ? "options.tuning->protocol" : "TUTTI_PROTOCOL", merged.protocol);
}

}  // namespace

Result<CommunicatorOptions> options_over(const CommunicatorOptions& inherited, const tutti_comm_options* given) {
  CommunicatorOptions merged = inherited;
  merged.abort = nullptr;  // The word belongs to another communicator, which may end.
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  if (given != nullptr) options = TUTTI_TRY(known_options(*given));
  if (options.name != nullptr) merged.name = options.name;
  const tutti_tuning_options tuning = TUTTI_TRY(known_tuning(options.tuning));
  if (!config().refused.empty()) return invalid_usage(config().refused.front());
  TUTTI_CHECK_OK(set_tuning(tuning, merged));
  TUTTI_CHECK_OK(set_compression(options, merged));
  merged.timeout_ms = TUTTI_TRY(timeout_of("timeout_ms", options.timeout_ms, merged.timeout_ms));
  merged.init_timeout_ms = TUTTI_TRY(timeout_of("init_timeout_ms", options.init_timeout_ms, merged.init_timeout_ms));
  TUTTI_CHECK_OK(set_memory(options.memory, merged));
  TUTTI_CHECK_OK(set_wait(options.wait, merged));
  TUTTI_CHECK_OK(set_traffic_class(options.traffic_class, merged));
  if (merged.memory == Memory::host) {
    if (merged.protocol == "LL128" && merged.protocol_is_from_nccl) {
      warn_about_nccl_variable("NCCL_PROTO", "LL128 is for GPUs");
      merged.protocol = "";
    }
    TUTTI_CHECK_OK(check_on_host_memory(merged.protocol, merged.channels));
  }
  merged.update_agreement_hash();
  return merged;
}

}  // namespace tutti
