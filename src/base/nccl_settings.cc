#include "src/base/nccl_settings.h"

#include <algorithm>
#include <span>

#include "src/base/config.h"
#include "src/base/read_number.h"
#include "src/base/split_at.h"

namespace tutti {
namespace {

// Returns the value, or the default of the variable.
std::string value_or_default(const std::string& value, std::string_view variable) {
  if (!value.empty()) return value;
  const auto all = variables();
  return std::find_if(all.begin(), all.end(), [&](const Variable& one) { return one.name == variable; })->default_text;
}

Status not_allowed(const std::string& variable, const std::string& value, const std::string& wanted) {
  return invalid_usage(variable + " is \"" + value + "\", but must be " + wanted);
}

Result<std::uint32_t> read_list(const char* variable, const std::string& list, std::span<const char* const> known) {
  const std::string value = value_or_default(list, variable);
  std::uint32_t bits = 0;
  for (const std::string& word : words_of_list(value)) {
    const auto found = std::find(known.begin(), known.end(), word);
    if (found == known.end()) {
      std::string wanted;
      for (const char* one : known) wanted.append(wanted.empty() ? "a list of " : ", ").append(one);
      return not_allowed(variable, value, wanted);
    }
    bits |= 1U << (found - known.begin());
  }
  return bits;
}

}  // namespace

std::vector<std::string> words_of_list(std::string_view list) {
  std::vector<std::string> words;
  for (const std::string_view part : split_at(list, ','))
    words.emplace_back(part.substr(std::min(part.find_first_not_of(' '), part.size())));
  return words;
}

Status check_nccl_memory(const std::string& memory) {
  if (memory.empty() || memory == "cuda" || memory == "host") return {};
  return not_allowed("TUTTI_NCCL_MEMORY", memory, "cuda, the default, or host");
}

Result<double> nccl_compression_bound(const std::string& bound) {
  const char* const variable = "TUTTI_NCCL_COMPRESS_MAX_RELATIVE_ERROR";
  const std::string value = value_or_default(bound, variable);
  double number = 0;
  if (read_number(value, number) && number >= 0 && number < 1) return number;
  return not_allowed(variable, value, "0, or a number above 0 and below 1");
}

Status check_nccl_format_or_bound(const std::string& format, double bound) {
  if (format.empty() || bound == 0) return {};
  return invalid_usage(
      "TUTTI_NCCL_COMPRESS and TUTTI_NCCL_COMPRESS_MAX_RELATIVE_ERROR are both set; set only one of them");
}

Result<std::uint64_t> nccl_compression_min_bytes(const std::string& bytes) {
  const char* const variable = "TUTTI_NCCL_COMPRESS_MIN_BYTES";
  const std::string value = value_or_default(bytes, variable);
  std::uint64_t number = 0;
  if (read_number(value, number)) return number;
  return not_allowed(variable, value, "a whole number of bytes");
}

Result<std::uint32_t> nccl_compressed_types(const std::string& list) {
  return read_list("TUTTI_NCCL_COMPRESS_TYPES", list, kNcclCompressedTypes);
}

Result<std::uint32_t> nccl_compressed_collectives(const std::string& list) {
  return read_list("TUTTI_NCCL_COMPRESS_COLLECTIVES", list, kNcclCollectives);
}

}  // namespace tutti
