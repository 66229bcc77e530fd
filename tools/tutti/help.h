// Help texts of the tool, from the descriptions of its commands.
#pragma once

#include <string>
#include <string_view>

#include "tools/tutti/command.h"

namespace tutti::tool {

inline constexpr std::size_t kHelpColumns = 100;  // Maximum length of a line.

// Text of `tutti --help`: a description of Tutti, and one line per command.
std::string overview();

// Text of `tutti COMMAND --help`.
std::string help_of(const Command& command);

// Breaks `text` between words into lines of at most kHelpColumns columns that begin at column `indent`; the first line
// continues one that is `used` columns long. A line feed in `text` begins a new line. Ends with a line feed.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t used);

}  // namespace tutti::tool
