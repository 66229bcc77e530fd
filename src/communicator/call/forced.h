// Checks of names by which users override the tuner.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/status.h"
#include "src/compression/format.h"
#include "src/plan/problem.h"

namespace tutti {

// Requested like an algorithm, but no plan: on GPUs, copy engines move the blocks of an all-gather or all-to-all
// between windows. Other calls, and calls that cannot use them, run as without the request.
inline constexpr std::string_view kCopyEngines = "copy_engines";
// True if copy engines can run the collective.
constexpr bool is_for_copy_engines(Collective collective) {
  return collective == Collective::all_gather || collective == Collective::all_to_all;
}

// Fails unless `name` is empty or applies to some collective. `source` is the setting that has the name, such as
// "options.tuning->algorithm" or "TUTTI_ALGORITHM".
Status check_algorithm(const std::string& source, const std::string& name);
Status check_transport(const std::string& source, const std::string& name);
Status check_protocol(const std::string& source, const std::string& name);
Status check_compression_format(const std::string& source, const std::string& name);
// Fails if both a format and an error bound are set; 0: no bound. `sources` are the settings.
Status check_compression_or_bound(const std::string& sources, const std::string& name, double max_relative_error);
// Fails if a bound is combined with stochastic rounding: error bounds assume rounding to nearest.
Status check_bounded_rounding(const std::string& sources, Rounding rounding, double max_relative_error);
// Fails if a setting requires GPUs.
Status check_on_host_memory(std::string_view protocol, std::uint32_t channels);
Result<Rounding> parse_rounding(const std::string& source, const std::string& name);

// The names in options as numbers; 0: not set. Ranks with the same library version use the same numbers.
struct Requested {
  static constexpr std::uint8_t kBound = 255;
  std::uint8_t algorithm = 0;
  std::uint8_t protocol = 0;
  std::uint8_t compression = 0;  // A CompressionFormat, or kBound for an error bound.
  std::uint8_t channels = 0;     // 255: 255 or more.
  bool operator==(const Requested&) const = default;
};
static_assert(sizeof(Requested) == 4);
// Returns the name for Requested::algorithm; "" for an invalid number.
std::string_view algorithm_name(std::uint8_t number);

// The settings that select compression, as a list for error messages.
inline constexpr char kCompressionIsSetBy[] =
    "options.compression, TUTTI_COMPRESS or TUTTI_NCCL_COMPRESS; a bound: options.max_relative_error, "
    "TUTTI_MAX_RELATIVE_ERROR or "
    "TUTTI_NCCL_COMPRESS_MAX_RELATIVE_ERROR";

// Logs that an override by an NCCL variable is ignored; once per process and variable.
void warn_about_nccl_variable(const std::string& variable, const std::string& why);

// Returns the names of a collective's algorithms. The text lives as long as the library.
Result<const char*> algorithms_of(std::string_view collective);

}  // namespace tutti
