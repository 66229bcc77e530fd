#include "src/base/protocol.h"

#include <algorithm>
#include <cctype>

namespace tutti {

std::string canonical_protocol(std::string_view text) {
  const auto same = [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); };
  for (const Protocol protocol : {Protocol::simple, Protocol::ll, Protocol::ll128}) {
    const std::string_view known = name(protocol);
    if (std::equal(text.begin(), text.end(), known.begin(), known.end(), same)) return std::string(known);
  }
  return std::string(text);
}

}  // namespace tutti
