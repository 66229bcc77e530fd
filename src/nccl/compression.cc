#include "src/nccl/compression.h"

#include <fnmatch.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "src/base/nccl_settings.h"
#include "src/nccl/calls.h"
#include "src/nccl/environment.h"

namespace tutti::nccl {
namespace {

constexpr std::uint32_t bit_of(int number) { return 1U << number; }
constexpr std::uint32_t bit_of(Kind kind) { return bit_of(static_cast<int>(kind)); }

constexpr ncclDataType_t kTypes[] = {ncclFloat32, ncclFloat16, ncclBfloat16};  // kNcclCompressedTypes.
static_assert(std::size(kTypes) == std::size(kNcclCompressedTypes));

constexpr const char* kAllNames = "*";  // Default, as listed in src/base/config_table.cc for `tutti doctor`.

std::string value_of(const char* rest) { return variable(std::string("TUTTI_NCCL_COMPRESS") + rest); }

template <typename Value>
Outcome store(Result<Value> read, Value& value) {
  if (!read.ok()) return invalid_usage(std::move(read).status().message());
  value = read.value();
  return {};
}

Outcome read_types(std::uint32_t& bits) {
  std::uint32_t types = 0;
  TUTTI_NCCL_CHECK(store(nccl_compressed_types(value_of("_TYPES")), types));
  for (std::size_t i = 0; i < std::size(kTypes); ++i)
    if ((types >> i & 1) != 0) bits |= bit_of(kTypes[i]);
  return {};
}

bool is_meant(const std::string& name) {
  const std::string list = value_of("_COMMS");
  const std::vector<std::string> patterns = words_of_list(list.empty() ? kAllNames : list);
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0; });
}

// Blocks in the larger buffer: one per rank, or just one.
std::size_t blocks_of(const Call& call) {
  const bool one = call.kind == Kind::all_reduce || call.kind == Kind::reduce || call.kind == Kind::broadcast;
  return one ? 1 : static_cast<std::size_t>(call.communicator->rank_config.ranks);
}

bool supports_compression(const Call& call) {
  const bool reduces = call.kind == Kind::all_reduce || call.kind == Kind::reduce_scatter || call.kind == Kind::reduce;
  return !reduces || call.made || call.reduction == ncclSum || call.reduction == ncclAvg;
}

}  // namespace

bool CompressionRule::takes(const Call& call) const {
  return (types & bit_of(call.type)) != 0 && (kinds & bit_of(call.kind)) != 0 && supports_compression(call) &&
         call.count * size_of(call.type) * blocks_of(call) >= min_bytes;
}

Outcome read_compression_rule(const std::string& name, CompressionRule& rule) {
  rule = {};
  CompressionRule read;
  read.format = variable("TUTTI_NCCL_COMPRESS");
  TUTTI_NCCL_CHECK(store(nccl_compression_bound(value_of("_MAX_RELATIVE_ERROR")), read.max_relative_error));
  if (!read.is_requested()) return {};
  const Status one = check_nccl_format_or_bound(read.format, read.max_relative_error);
  if (!one.ok()) return invalid_usage(one.message());
  TUTTI_NCCL_CHECK(store(nccl_compression_min_bytes(value_of("_MIN_BYTES")), read.min_bytes));
  TUTTI_NCCL_CHECK(read_types(read.types));
  TUTTI_NCCL_CHECK(store(nccl_compressed_collectives(value_of("_COLLECTIVES")), read.kinds));
  if (!is_meant(name)) return {};
  rule = std::move(read);
  return {};
}

Outcome make_compressed(tutti_comm comm, const CompressionRule& rule, tutti_comm& compressed) {
  compressed = nullptr;
  if (!rule.is_requested()) return {};
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  options.compression = rule.format.empty() ? nullptr : rule.format.c_str();
  options.max_relative_error = rule.max_relative_error;
  Outcome made = outcome_of(tutti_comm_with_options(comm, &options, &compressed));
  const char* const variable = rule.format.empty() ? "TUTTI_NCCL_COMPRESS_MAX_RELATIVE_ERROR" : "TUTTI_NCCL_COMPRESS";
  if (made.failed()) made.why = std::string(variable) + ": " + made.why;
  return made;
}

}  // namespace tutti::nccl
