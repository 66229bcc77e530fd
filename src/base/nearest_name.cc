#include "src/base/nearest_name.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <vector>

namespace tutti {
namespace {

constexpr std::size_t kMinAbbreviation = 3;
constexpr std::size_t kLettersPerEdit = 4;

std::string letters_of(std::string_view name) {
  std::string letters;
  for (const char letter : name)
    if (letter != '-' && letter != '_') letters += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return letters;
}

// Number of insertions, deletions, replacements and swaps of adjacent letters that turn a into b.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> edits(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        edits[i][j] = i + j;
        continue;
      }
      const std::size_t replaced = edits[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      edits[i][j] = std::min({edits[i - 1][j] + 1, edits[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        edits[i][j] = std::min(edits[i][j], edits[i - 2][j - 2] + 1);
    }
  }
  return edits[a.size()][b.size()];
}

}  // namespace

std::string_view nearest_name(std::string_view written, std::span<const std::string_view> known) {
  const std::string letters = letters_of(written);
  std::size_t fewest = std::max<std::size_t>(letters.size() / kLettersPerEdit, 1) + 1;
  std::string_view nearest;
  for (const std::string_view name : known) {
    const std::string other = letters_of(name);
    const bool abbreviates = letters.size() >= kMinAbbreviation && other.starts_with(letters);
    const std::size_t edits = abbreviates ? 0 : distance(letters, other);
    // If a text abbreviates several names, the shortest one is the nearest.
    const bool nearer = edits < fewest || (edits == fewest && edits == 0 && name.size() < nearest.size());
    if (!nearer) continue;
    fewest = edits;
    nearest = name;
  }
  return nearest;
}

std::string suggestion(std::string_view written, std::span<const std::string_view> known) {
  const std::string_view nearest = nearest_name(written, known);
  if (!nearest.empty()) return "did you mean " + std::string(nearest) + "?";
  std::string list;
  for (const std::string_view name : known) list.append(list.empty() ? "must be one of " : ", ").append(name);
  return list;
}

}  // namespace tutti
