// Random numbers, keys and message authentication codes: BLAKE2b, keyed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "src/base/rank.h"
#include "src/base/status.h"
#include "src/bootstrap/unique_id.h"

namespace tutti {

using Digest = std::array<std::uint8_t, 32>;
using Bytes = std::span<const std::byte>;

template <typename T>
requires(std::is_trivially_copyable_v<T> && !std::is_convertible_v<const T&, std::string_view>) Bytes
    bytes_of(const T& object) {
  return std::as_bytes(std::span(&object, 1));
}
inline Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

Status fill_randomly(std::span<std::byte> bytes);

// Digest of all parts with their lengths, so that different splits give different digests.
Digest digest(const Secret& key, std::initializer_list<Bytes> parts);
// Returns the name of a rank's abstract unix socket. Only holders of the key can guess it, so no other process can take
// it first.
std::string hidden_name(const Secret& key, std::string_view purpose, Rank rank);
bool equal(const Digest& a, const Digest& b);  // Constant time.

// Fails unless the file contains a secret and only its owner can read it. Succeeds if the path is empty.
Status check_secret_file(const std::string& path);
// Returns the key of a communicator, from the id's secret and, if a path is given, the content of the file.
Result<Secret> communicator_key(const UniqueId& id, const std::string& secret_file);
// Returns the key with which a launcher's ranks request the id from rank 0. It is secret only if there is a file.
Result<Secret> invitation_key(const std::string& secret_file);

}  // namespace tutti
