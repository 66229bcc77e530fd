// A hash of short texts that ranks compare: the same on every machine, and no secret.
#pragma once

#include <cstdint>
#include <string_view>

namespace tutti {

// G. Fowler, L. C. Noll, K.-P. Vo: FNV-1a of 32 bits, going on from `hash`.
constexpr std::uint32_t hashed(std::uint32_t hash, std::string_view text) {
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619U;
  return hash;
}

}  // namespace tutti
