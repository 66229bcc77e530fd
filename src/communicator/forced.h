// Names that users may force upon the tuner.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/status.h"
#include "src/compression/format.h"

namespace tutti {

struct CommunicatorOptions;

// Whether a communicator can heed the name for any collective at all; it may be empty. `source` says who gave it:
// "options.tuning->algorithm", "TUTTI_ALGORITHM".
Status check_algorithm(const std::string& source, const std::string& name);
Status check_transport(const std::string& source, const std::string& name);
Status check_protocol(const std::string& source, const std::string& name);
Status check_compression_format(const std::string& source, const std::string& name);
// A bound on the error is there instead of a format; 0: there is none. `sources` says who gave them.
Status check_compression_or_bound(const std::string& sources, const std::string& name, double max_relative_error);
// Expected errors hold for rounding to nearest only.
Status check_bounded_rounding(const std::string& sources, Rounding rounding, double max_relative_error);
// Fails for settings that only GPUs support.
Status check_on_host_memory(std::string_view protocol, std::uint32_t channels);
Result<Rounding> parse_rounding(const std::string& source, const std::string& name);

// Names that options request for a call, as numbers that are equal on all ranks of a version; 0: none.
struct Asked {
  static constexpr std::uint8_t kBound = 255;
  std::uint8_t algorithm = 0;
  std::uint8_t protocol = 0;
  std::uint8_t compression = 0;  // A CompressionFormat, or kBound: a bound on the error instead.
  std::uint8_t channels = 0;     // 255: so many or more.
  bool operator==(const Asked&) const = default;
};
static_assert(sizeof(Asked) == 4);
std::string_view algorithm_name(std::uint8_t number);  // Of Asked; "" for a number that is none.

// Sources of a compression format, as a list for messages.
inline constexpr char kCompressionIsSetBy[] =
    "options.compression, TUTTI_COMPRESS or TUTTI_NCCL_COMPRESS; a bound: options.max_relative_error, "
    "TUTTI_MAX_RELATIVE_ERROR or "
    "TUTTI_NCCL_COMPRESS_MAX_RELATIVE_ERROR";

// Logs that what a variable of NCCL's forces is not heeded; once in the process for each variable.
void warn_of_nccls(const std::string& variable, const std::string& why);

// The names of a collective's algorithms, for people; they live as long as the library.
Result<const char*> algorithms_of(std::string_view collective);

}  // namespace tutti
