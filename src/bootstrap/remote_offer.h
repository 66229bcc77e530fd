// What a rank has for ranks of other hosts beside TCP, told while they join. What becomes of it is its owner's
// business.
#pragma once

#include <cstddef>
#include <string>

namespace tutti {

struct RemoteOffer {
  std::string carrier;   // "verbs"; empty: nothing. Of either, what is beyond its room in a ListenerRecord is cut.
  std::string why_none;  // Then, for messages.
};

inline constexpr std::size_t kMaxWhyBytes = 191;

}  // namespace tutti
