// Transport that a rank offers to other hosts besides TCP, exchanged while ranks join. The owner decides about its use.
#pragma once

#include <cstddef>
#include <string>

namespace tutti {

struct RemoteOffer {
  std::string carrier;   // "verbs"; empty: none. Texts are truncated to fit a ListenerRecord.
  std::string why_none;  // Reason if `carrier` is empty, for messages.
};

inline constexpr std::size_t kMaxWhyBytes = 191;

}  // namespace tutti
