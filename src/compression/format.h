// What a payload looks like between ranks when it is narrower than its tensor: formats, their names and their sizes.
// docs/reference/compression-formats.md specifies every byte.
#pragma once

#include <cstdint>
#include <string_view>

#include "src/base/status.h"
#include "src/base/types.h"

namespace tutti {

enum class CompressionFormat : std::uint8_t { none, fp16, bf16, fp8_e4m3, fp8_e5m2, mxfp8, int8, int8_b32, int6, int4 };
inline constexpr std::uint32_t kCompressionFormats = 10;

// Elements that are encoded together. The last group of a buffer may be shorter; its wire bytes are as many.
inline constexpr std::uint32_t kCompressionGroup = 128;

const char* name(CompressionFormat format);  // "int8_b32", of none "raw"; nullptr for a value that is no format.
Result<CompressionFormat> parse_compression(std::string_view text);

// Of a group; 0 for `none`.
std::uint32_t compressed_bytes(CompressionFormat format);
// Of so many elements of a type, in whole groups; as they are for `none`.
std::uint64_t compressed_bytes(CompressionFormat format, std::uint64_t count, DataType type);

// What memory of 16-bit floats is, up to its last group: a message without scales. Of float32: `none`.
CompressionFormat memory_format(DataType type);

// What becomes of a number between two codes.
enum class Rounding : std::uint8_t { nearest, stochastic };

// The root of the mean square of the error over that of the values, for Gaussian values that are encoded once: as
// tests/wire measures it. 0 for `none`.
double compression_error(CompressionFormat format, Rounding rounding = Rounding::nearest);

// The same of a sum whose terms are rounded so many times on the mean (CostLaw::rounded) while they are added up, and
// are independent: sqrt(roundings) times as much, and somewhat more where they are many.
double compression_error_after(CompressionFormat format, double roundings, Rounding rounding = Rounding::nearest);

}  // namespace tutti
