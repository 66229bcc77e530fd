// Lists in environment variables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tutti::nccl {

// Returns the words of a list, which commas separate, without spaces before them.
inline std::vector<std::string> words_of(std::string_view list) {
  std::vector<std::string> words(1);
  for (const char letter : list) {
    if (letter == ',') words.emplace_back();
    else if (letter != ' ' || !words.back().empty()) words.back() += letter;
  }
  return words;
}

}  // namespace tutti::nccl
