// Compression formats of messages: names and sizes. docs/reference/compression-formats.md specifies every byte.
#pragma once

#include <cstdint>
#include <string_view>

#include "src/base/platform.h"
#include "src/base/status.h"
#include "src/base/types.h"

namespace tutti {

enum class CompressionFormat : std::uint8_t { none, fp16, bf16, fp8_e4m3, fp8_e5m2, mxfp8, int8, int8_b32, int6, int4 };
inline constexpr std::uint32_t kCompressionFormats = 10;

// Elements per group, the unit of encoding. A shorter last group has the same encoded size.
inline constexpr std::uint32_t kCompressionGroup = 128;
// Groups of `count` elements.
TUTTI_HOST_DEVICE constexpr std::uint64_t compression_groups(std::uint64_t count) {
  return (count + kCompressionGroup - 1) / kCompressionGroup;
}

const char* name(CompressionFormat format);  // For example "int8_b32"; "raw" for none; nullptr for an invalid value.
Result<CompressionFormat> parse_compression(std::string_view text);

// Encoded bytes of a group; 0 for `none`.
std::uint32_t compressed_bytes(CompressionFormat format);
// Encoded bytes of `count` elements, rounded up to whole groups. For `none`: the size of the uncompressed elements.
std::uint64_t compressed_bytes(CompressionFormat format, std::uint64_t count, DataType type);

// Format whose encoding equals the tensor's memory: fp16 or bf16 for 16-bit floats, `none` for float32.
CompressionFormat memory_format(DataType type);

// Rounding of values between two codes.
enum class Rounding : std::uint8_t { nearest, stochastic };

// Relative RMS error of one encoding of Gaussian values, as measured by tests/compression/meaning_test.cc. 0 for
// `none`.
double compression_error(CompressionFormat format, Rounding rounding = Rounding::nearest);

// Relative RMS error of a sum of independent terms, rounded `roundings` times on average (CostLaw::rounded) during the
// reduction. Close to sqrt(roundings) times compression_error(), and somewhat more for many roundings.
double compression_error_after(CompressionFormat format, double roundings, Rounding rounding = Rounding::nearest);

}  // namespace tutti
