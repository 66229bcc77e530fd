// Hash of short texts that ranks compare. Equal on all machines; not cryptographic.
#pragma once

#include <cstdint>
#include <string_view>

namespace tutti {

// FNV-1a with 32 bits (Fowler, Noll, Vo). Pass the previous hash to continue it.
constexpr std::uint32_t hashed(std::uint32_t hash, std::string_view text) {
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619U;
  return hash;
}

}  // namespace tutti
