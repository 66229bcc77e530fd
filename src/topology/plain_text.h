// Which text of files may be shown: UTF-8, without what would confuse a terminal or what no file of XML may have.
#pragma once

#include <cstddef>
#include <string_view>

namespace tutti {

// Where the first byte lies that is not part of a character, as RFC 3629 says, or is of a control character, surrogate
// or one that Unicode has set aside for nobody; text.size() if there is none.
std::size_t plain_until(std::string_view text);
// The same, with tabs and ends of lines taken for text, as in whole files.
std::size_t plain_lines_until(std::string_view text);
// At most so many bytes of its beginning, in whole characters.
std::string_view beginning_of(std::string_view text, std::size_t most);

}  // namespace tutti
