#include "transports/tcp/records.h"

#include <sodium.h>

#include <cstring>

namespace tutti {
namespace {

static_assert(Records::kTag == crypto_aead_chacha20poly1305_IETF_ABYTES && Records::kTag == crypto_onetimeauth_BYTES);
static_assert(crypto_aead_chacha20poly1305_IETF_KEYBYTES == sizeof(RecordKey));

const bool ready = ::sodium_init() >= 0;  // Selects the fastest implementation for this CPU.

std::uint8_t* raw(std::byte* bytes) { return reinterpret_cast<std::uint8_t*>(bytes); }
const std::uint8_t* raw(const std::byte* bytes) { return reinterpret_cast<const std::uint8_t*>(bytes); }

// Computes the tag of header and text. Its key is used for this record only.
void tag_of(const RecordKey& key, const std::array<std::uint8_t, 12>& nonce, std::span<const std::byte> head_and_text,
            std::uint8_t* tag) {
  std::array<std::uint8_t, crypto_onetimeauth_KEYBYTES> once{};
  ::crypto_stream_chacha20_ietf(once.data(), once.size(), nonce.data(), key.data());
  ::crypto_onetimeauth(tag, raw(head_and_text.data()), head_and_text.size(), once.data());
  ::sodium_memzero(once.data(), once.size());
}

}  // namespace

RecordKey record_key(const RecordKey& secret, std::string_view direction) {
  RecordKey key;
  ::crypto_generichash(key.data(), key.size(), reinterpret_cast<const std::uint8_t*>(direction.data()),
                       direction.size(), secret.data(), secret.size());
  return key;
}

Records::~Records() { ::sodium_memzero(key_.data(), key_.size()); }

std::array<std::uint8_t, 12> Records::next_nonce() {
  std::array<std::uint8_t, 12> nonce{};
  const std::uint64_t number = number_++;
  for (std::size_t i = 0; i < sizeof number; ++i) nonce[4 + i] = static_cast<std::uint8_t>(number >> (8 * i));
  return nonce;
}

void Records::close(std::span<const std::byte> plain, std::vector<std::byte>& out) {
  TUTTI_ASSERT(ready && !plain.empty() && plain.size() <= kMaxPlain);
  const auto bytes = static_cast<std::uint32_t>(plain.size());
  const std::size_t at = out.size();
  out.resize(at + kHead + plain.size() + kTag);
  std::byte* head = out.data() + at;
  std::byte* text = head + kHead;
  for (std::size_t i = 0; i < kHead; ++i) head[i] = static_cast<std::byte>(bytes >> (8 * i));
  const auto nonce = next_nonce();
  if (protection_ == Protection::encrypted) {
    ::crypto_aead_chacha20poly1305_ietf_encrypt(raw(text), nullptr, raw(plain.data()), plain.size(), raw(head), kHead,
                                                nullptr, nonce.data(), key_.data());
    return;
  }
  std::memcpy(text, plain.data(), plain.size());
  tag_of(key_, nonce, {head, kHead + plain.size()}, raw(text + plain.size()));
}

Result<std::optional<Records::Opened>> Records::open(std::span<std::byte> in) {
  if (in.size() < kHead) return std::optional<Opened>();
  std::uint32_t bytes = 0;
  for (std::size_t i = 0; i < kHead; ++i) bytes |= static_cast<std::uint32_t>(in[i]) << (8 * i);
  if (bytes == 0 || bytes > kMaxPlain) return remote_error(kDamaged);
  const std::size_t whole = kHead + bytes + kTag;
  if (in.size() < whole) return std::optional<Opened>();
  std::byte* text = in.data() + kHead;
  const auto nonce = next_nonce();
  bool right = false;
  if (protection_ == Protection::encrypted) {
    right = ::crypto_aead_chacha20poly1305_ietf_decrypt(raw(text), nullptr, nullptr, raw(text), bytes + kTag,
                                                        raw(in.data()), kHead, nonce.data(), key_.data()) == 0;
  } else {
    std::array<std::uint8_t, kTag> tag{};
    tag_of(key_, nonce, in.first(kHead + bytes), tag.data());
    right = ::sodium_memcmp(tag.data(), raw(text + bytes), kTag) == 0;
  }
  if (!right) return remote_error(kDamaged);
  return std::optional<Opened>({{text, bytes}, whole});
}

}  // namespace tutti
