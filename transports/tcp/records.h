// Records of a connection. Each has a tag by which the receiver detects altered, repeated, missing or reordered
// data. Encryption is optional.
//
// Encrypted: ChaCha20-Poly1305 of RFC 8439, with the record's number as nonce. Not encrypted: only a Poly1305 tag.
// Its key for each record is the first block of the ChaCha20 key stream of the same nonce, as in the RFC.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "src/base/status.h"

namespace tutti {

// How the bytes of a connection are protected; the same at both ends.
enum class Protection : std::uint32_t { none = 0, checked = 1, encrypted = 2 };

inline constexpr const char* kDamaged = "received data was altered on its way";

using RecordKey = std::array<std::uint8_t, 32>;

// One direction, from one end to the other. Each direction has a key of its own.
class Records {
 public:
  static constexpr std::size_t kMaxPlain = 64 * 1024;
  static constexpr std::size_t kHead = 4, kTag = 16;  // The length of what is between them, little endian.

  Records(Protection protection, const RecordKey& key) : protection_(protection), key_(key) {}
  ~Records();
  Records(const Records&) = delete;
  Records& operator=(const Records&) = delete;

  // Puts `plain`, of 1 to kMaxPlain bytes, at the end of `out` as a record.
  void close(std::span<const std::byte> plain, std::vector<std::byte>& out);
  // The record at the beginning of `in`, if it is there as a whole: what was put into it, and how long it is itself.
  // The text lies in `in`, which it may change. Fails, with kDamaged, for what is not the other end's next record.
  struct Opened {
    std::span<const std::byte> plain;
    std::size_t bytes = 0;
  };
  Result<std::optional<Opened>> open(std::span<std::byte> in);

 private:
  std::array<std::uint8_t, 12> next_nonce();

  Protection protection_;
  RecordKey key_;
  std::uint64_t number_ = 0;
};

// Two keys of one secret that both ends have: one for what the end that called sends, one for the other's.
RecordKey record_key(const RecordKey& secret, std::string_view direction);

}  // namespace tutti
