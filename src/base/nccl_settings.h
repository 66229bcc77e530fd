// Values of TUTTI_NCCL_MEMORY and the TUTTI_NCCL_COMPRESS variables, which libnccl.so.2 uses and `tutti doctor` checks.
// An empty value means the default. Error messages name the variable.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"

namespace tutti {

// Types and collectives that support compression; see docs/reference/compression-formats.md. The names of collectives
// are those of tutti.h, in the order of nccl::Kind.
inline constexpr const char* kNcclCompressedTypes[] = {"float32", "float16", "bfloat16"};
inline constexpr const char* kNcclCollectives[] = {"all_reduce", "reduce_scatter", "reduce",  "all_gather",
                                                   "broadcast",  "gather",         "scatter", "all_to_all"};

// Returns the words of a list, which commas separate, without spaces before them.
std::vector<std::string> words_of_list(std::string_view list);

Status check_nccl_memory(const std::string& memory);
// Returns TUTTI_NCCL_COMPRESS_MAX_RELATIVE_ERROR; 0: no bound.
Result<double> nccl_compression_bound(const std::string& bound);
// Fails if both TUTTI_NCCL_COMPRESS and a bound are set.
Status check_nccl_format_or_bound(const std::string& format, double bound);
Result<std::uint64_t> nccl_compression_min_bytes(const std::string& bytes);
// Return a set of bits: bit i stands for kNcclCompressedTypes[i], or for kNcclCollectives[i].
Result<std::uint32_t> nccl_compressed_types(const std::string& list);
Result<std::uint32_t> nccl_compressed_collectives(const std::string& list);

}  // namespace tutti
