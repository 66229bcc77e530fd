#include "src/base/similar_names.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <utility>

namespace tutti {
namespace {

// Real variables of NCCL that Tutti does not read, with names that are within kMaxEdits of one that it reads.
constexpr std::array<std::string_view, 2> kOtherNcclNames = {"NCCL_IB_SL", "NCCL_PXN_DISABLE"};
constexpr std::size_t kMaxEdits = 2;

// Minimum number of characters to insert, delete or replace to turn a into b.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

// A name that was cut short is nearest to the whole name.
std::size_t distance(std::string_view written, const Variable& known) {
  return std::string_view(known.name).starts_with(written) ? 0 : edit_distance(written, known.name);
}

std::string no_such_variable(const std::string& written, const char* meant) {
  return "there is no variable " + written + ": did you mean " + meant + "?";
}

// NCCL has many variables that Tutti does not read, so only names that are very similar to one that it reads count.
const char* nearest_nccl_name(std::string_view written, std::span<const Variable> known) {
  if (std::find(kOtherNcclNames.begin(), kOtherNcclNames.end(), written) != kOtherNcclNames.end()) return nullptr;
  const char* nearest = nullptr;
  std::size_t edits = kMaxEdits + 1;
  for (const Variable& one : known) {
    if (one.alias == nullptr) continue;
    const std::size_t needed = edit_distance(written, one.alias);
    if (needed == 0) return nullptr;
    if (needed < edits) nearest = one.alias;
    edits = std::min(edits, needed);
  }
  return nearest;
}

}  // namespace

std::vector<std::string> similar_names(const Environment& environment, std::span<const Variable> known) {
  std::vector<std::string> warnings;
  for (const auto& [name, value] : environment.variables()) {
    if (name.starts_with("NCCL_")) {
      if (const char* meant = nearest_nccl_name(name, known)) warnings.push_back(no_such_variable(name, meant));
      continue;
    }
    const std::string& written = name;
    if (!written.starts_with("TUTTI_")) continue;
    if (std::any_of(known.begin(), known.end(), [&](const Variable& one) { return written == one.name; })) continue;
    const auto nearest = std::min_element(known.begin(), known.end(), [&](const Variable& a, const Variable& b) {
      return distance(written, a) < distance(written, b);
    });
    warnings.push_back(no_such_variable(written, nearest->name));
  }
  return warnings;
}

}  // namespace tutti
