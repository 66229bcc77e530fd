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

// Of all parts, each with its length, so that no other cut into parts gives the same.
Digest digest(const Secret& key, std::initializer_list<Bytes> parts);
bool equal(const Digest& a, const Digest& b);  // In constant time.

// Whether there is a secret in it, which nobody but its owner may read; the path may be empty.
Status check_secret_file(const std::string& path);
// The key of a communicator: of its id's secret, and of what the file holds where a path is given.
Result<Secret> communicator_key(const UniqueId& id, const std::string& secret_file);
// The key under which a launcher's ranks ask rank 0 for the id: secret only if there is a file.
Result<Secret> invitation_key(const std::string& secret_file);

}  // namespace tutti
