#include "src/nccl/compression.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <string_view>
#include <vector>

#include "src/base/read_number.h"
#include "src/nccl/calls.h"
#include "src/nccl/environment.h"
#include "src/nccl/values.h"

namespace tutti::nccl {
namespace {

struct Named {
  std::string_view name;
  std::uint32_t bit;
};

constexpr std::uint32_t bit_of(int number) { return 1U << number; }
constexpr std::uint32_t bit_of(Kind kind) { return bit_of(static_cast<int>(kind)); }

// Types and collectives that support compression; see docs/reference/compression-formats.md.
constexpr Named kTypes[] = {
    {"float32", bit_of(ncclFloat32)}, {"float16", bit_of(ncclFloat16)}, {"bfloat16", bit_of(ncclBfloat16)}};
constexpr auto kKinds = [] {
  std::array<Named, std::size(kCollectives)> all = {};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = {kCollectives[i], bit_of(static_cast<int>(i))};
  return all;
}();

// Defaults, as listed in src/base/config_table.cc for `tutti doctor`.
constexpr const char* kMinBytes = "262144";
constexpr const char* kUsualTypes = "float32,float16,bfloat16";
constexpr const char* kUsualKinds = "all_reduce,reduce_scatter,reduce";
constexpr const char* kAllNames = "*";

std::string value_or(const char* rest, const char* fallback) {
  std::string value = variable(std::string("TUTTI_NCCL_COMPRESS") + rest);
  return value.empty() ? fallback : value;
}

Outcome no_value(const char* rest, const std::string& value, const std::string& wanted) {
  return invalid_usage(std::string("TUTTI_NCCL_COMPRESS") + rest + " is \"" + value + "\", but must be " + wanted);
}

Outcome read_list(const char* rest, const char* fallback, std::span<const Named> known, std::uint32_t& bits) {
  const std::string value = value_or(rest, fallback);
  for (const std::string& word : words_of(value)) {
    const auto found = std::find_if(known.begin(), known.end(), [&](const Named& one) { return one.name == word; });
    if (found == known.end()) {
      std::string wanted = "a list of";
      for (const Named& one : known) wanted.append(&one == known.data() ? " " : ", ").append(one.name);
      return no_value(rest, value, wanted);
    }
    bits |= found->bit;
  }
  return {};
}

Outcome read_bytes(std::size_t& bytes) {
  const std::string value = value_or("_MIN_BYTES", kMinBytes);
  if (read_number(value, bytes)) return {};
  return no_value("_MIN_BYTES", value, "a whole number of bytes");
}

Outcome read_bound(double& bound) {
  const std::string value = value_or("_MAX_RELATIVE_ERROR", "0");
  if (read_number(value, bound) && bound >= 0 && bound < 1) return {};
  return no_value("_MAX_RELATIVE_ERROR", value, "0, or a number above 0 and below 1");
}

bool is_meant(const std::string& name) {
  const std::vector<std::string> patterns = words_of(value_or("_COMMS", kAllNames));
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
  TUTTI_NCCL_CHECK(read_bound(read.max_relative_error));
  if (!read.is_requested()) return {};
  if (!read.format.empty() && read.max_relative_error > 0)
    return invalid_usage(
        "TUTTI_NCCL_COMPRESS and TUTTI_NCCL_COMPRESS_MAX_RELATIVE_ERROR are both set; set only one of them");
  TUTTI_NCCL_CHECK(read_bytes(read.min_bytes));
  TUTTI_NCCL_CHECK(read_list("_TYPES", kUsualTypes, kTypes, read.types));
  TUTTI_NCCL_CHECK(read_list("_COLLECTIVES", kUsualKinds, kKinds, read.kinds));
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
