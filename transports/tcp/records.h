// Records of a connection. Each has a tag by which the receiver detects altered, repeated, missing or reordered
// data. Encryption is optional.
//
// Encrypted: ChaCha20-Poly1305 of RFC 8439, with the record's number as nonce. Checked only: a Poly1305 tag. The key of
// each tag is the first block of the ChaCha20 key stream for the same nonce, as in the RFC.
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

// Protection of the bytes of a connection. Both ends use the same.
enum class Protection : std::uint32_t { none = 0, checked = 1, encrypted = 2 };

inline constexpr const char* kDamaged = "received data was altered on its way";

using RecordKey = std::array<std::uint8_t, 32>;

// Records of one direction. Each direction has a key of its own.
class Records {
 public:
  static constexpr std::size_t kMaxPlain = 64 * 1024;
  // kHead: the length of the text between head and tag, little endian.
  static constexpr std::size_t kHead = 4, kTag = 16;

  Records(Protection protection, const RecordKey& key) : protection_(protection), key_(key) {}
  ~Records();
  Records(const Records&) = delete;
  Records& operator=(const Records&) = delete;

  // Appends `plain`, of 1 to kMaxPlain bytes, to `out` as a record.
  void close(std::span<const std::byte> plain, std::vector<std::byte>& out);
  // Opens the record at the beginning of `in`. Returns nothing if the record is incomplete. Decrypts in place: `plain`
  // points into `in`. `bytes` is the size of the record. Fails with kDamaged if it is not the next record of the other
  // end.
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

// Derives the key of one direction from the secret of both ends. The directions are "caller" and "called".
RecordKey record_key(const RecordKey& secret, std::string_view direction);

}  // namespace tutti
