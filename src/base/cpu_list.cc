#include "src/base/cpu_list.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "src/base/read_number.h"

namespace tutti {
namespace {

constexpr std::size_t kMaxWords = 512;  // 16,384 processors.
constexpr std::uint32_t kMaxCpus = kMaxWords * 32;

std::string to_text(const std::vector<bool>& cpus) {
  std::string text;
  for (std::size_t first = 0; first < cpus.size(); ++first) {
    if (!cpus[first]) continue;
    std::size_t last = first;
    while (last + 1 < cpus.size() && cpus[last + 1]) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(first);
    if (last > first) text += "-" + std::to_string(last);
    first = last;
  }
  return text;
}

// Removes a number from the begin of the text. Returns false if the text begins with none.
bool take_number(std::string_view& text, std::uint32_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

}  // namespace

Result<std::string> cpus_of_mask(std::string_view mask) {
  std::vector<std::uint32_t> words;
  const std::string whole(mask.substr(0, 64));
  while (!mask.empty()) {
    const std::size_t comma = std::min(mask.find(','), mask.size());
    std::string_view word = mask.substr(0, comma);
    mask.remove_prefix(std::min(comma + 1, mask.size()));
    if (word.starts_with("0x")) word.remove_prefix(2);
    std::uint32_t value = 0;
    if (!word.empty() && !read_number(word, value, 16))
      return invalid_argument("'" + whole +
                              "' is not a CPU mask: expected hexadecimal words of 32 bits, separated by commas");
    if (words.size() == kMaxWords) return invalid_argument("a mask of more than 16384 processors");
    words.push_back(value);
  }
  std::vector<bool> cpus(words.size() * 32);
  for (std::size_t i = 0; i < cpus.size(); ++i) cpus[i] = words[words.size() - 1 - i / 32] >> (i % 32) & 1;
  return to_text(cpus);
}

Result<std::vector<std::uint32_t>> cpus_of_list(std::string_view list) {
  std::vector<std::uint32_t> cpus;
  const std::string whole(list.substr(0, 64));
  while (!list.empty()) {
    std::uint32_t first = 0;
    bool good = take_number(list, first);
    std::uint32_t last = first;
    if (good && list.starts_with('-')) {
      list.remove_prefix(1);
      good = take_number(list, last) && last >= first;
    }
    if (good && !list.empty()) good = list.front() == ',' && list.size() > 1;
    good = good && last < kMaxCpus && (cpus.empty() || first > cpus.back());
    if (!good) return invalid_argument("'" + whole + "' is not a CPU list: expected a list like 0-3,8");
    if (!list.empty()) list.remove_prefix(1);
    for (std::uint32_t cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

Result<std::string> mask_of_cpus(std::string_view list) {
  const std::vector<std::uint32_t> cpus = TUTTI_TRY(cpus_of_list(list));
  std::vector<std::uint32_t> words(cpus.empty() ? 1 : cpus.back() / 32 + 1);
  for (const std::uint32_t cpu : cpus) words[cpu / 32] |= 1u << (cpu % 32);
  std::string mask;
  for (std::size_t i = words.size(); i-- > 0;) {
    char word[10];
    std::snprintf(word, sizeof word, "%08x%s", words[i], i > 0 ? "," : "");
    mask += word;
  }
  return mask;
}

}  // namespace tutti
