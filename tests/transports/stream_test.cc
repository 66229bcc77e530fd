// Protected records deliver data as sent or not at all, whatever happens on the network.
#include "transports/tcp/stream.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <string>

#include "tests/transports/loopback.h"

namespace tutti::test {
namespace {

using Bytes = std::vector<std::byte>;

constexpr RecordKey kSecret = {1, 2, 3, 4, 5};

Bytes random_bytes(std::size_t bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes made(bytes);
  for (std::byte& byte : made) byte = static_cast<std::byte>(random());
  return made;
}

class ProtectedRecords : public testing::TestWithParam<Protection> {
 protected:
  Seal seal() const { return {GetParam(), kSecret}; }
};

TEST_P(ProtectedRecords, ArriveInOrder) {
  Records out(GetParam(), kSecret), in(GetParam(), kSecret);
  Bytes wire;
  const std::size_t sizes[] = {1, 2, 15, 16, 17, 4096, Records::kMaxPlain};
  for (const std::size_t bytes : sizes) out.close(random_bytes(bytes, bytes), wire);
  std::span<std::byte> left(wire);
  for (const std::size_t bytes : sizes) {
    EXPECT_FALSE(in.open(left.first(Records::kHead + bytes)).value());  // Not yet complete,
    const auto opened = in.open(left);                                  // which has no effect.
    ASSERT_TRUE(opened.ok()) << bytes;
    const Bytes expected = random_bytes(bytes, bytes);
    EXPECT_TRUE(
        std::equal(expected.begin(), expected.end(), opened.value()->plain.begin(), opened.value()->plain.end()));
    left = left.subspan(opened.value()->bytes);
  }
  EXPECT_TRUE(left.empty());
}

TEST_P(ProtectedRecords, RejectAnyAlteredBit) {
  Bytes wire;
  Records(GetParam(), kSecret).close(random_bytes(40, 7), wire);
  for (std::size_t bit = 0; bit < 8 * wire.size(); ++bit) {
    Bytes altered = wire;
    altered[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    const auto opened = Records(GetParam(), kSecret).open(altered);
    EXPECT_TRUE(!opened.ok() || !opened.value()) << "bit " << bit;  // A longer record never completes.
  }
}

TEST_P(ProtectedRecords, RejectRepeatedMissingAndForgedRecords) {
  const auto refuses = [](Records& in, Bytes& wire) { return !in.open(wire).ok(); };
  Records out(GetParam(), kSecret);
  Bytes first, second;
  out.close(random_bytes(100, 1), first);
  out.close(random_bytes(100, 2), second);
  Records skips(GetParam(), kSecret), repeats(GetParam(), kSecret);
  EXPECT_TRUE(refuses(skips, second));
  Bytes again = first;
  EXPECT_FALSE(refuses(repeats, first));
  EXPECT_TRUE(refuses(repeats, again));
  RecordKey other = kSecret;
  other[31] ^= 1;
  Bytes forged;
  Records(GetParam(), other).close(random_bytes(100, 1), forged);
  Records in(GetParam(), kSecret);
  EXPECT_TRUE(refuses(in, forged));
}

TEST_P(ProtectedRecords, HideText_OnlyWithEncryption) {
  const std::string text = "weights of the last layer, a secret";
  Bytes wire;
  Records(GetParam(), kSecret).close(std::as_bytes(std::span(text)), wire);
  const auto* begin = reinterpret_cast<const char*>(wire.data());
  const bool shown = std::string(begin, wire.size()).find("layer") != std::string::npos;
  EXPECT_EQ(shown, GetParam() == Protection::checked);
}

// Runs both ends in one thread, as far as the socket's buffers allow. Reads and writes have different lengths.
TEST_P(ProtectedRecords, CarryStreamsInBothDirections) {
  const auto seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  auto [first, second] = loopback_pair();
  ByteStream here(std::move(first), seal(), true), there(std::move(second), seal(), false);
  const Bytes sent = random_bytes(3 << 20, seed);
  for (ByteStream* from : {&here, &there}) {
    ByteStream& to = from == &here ? there : here;
    Bytes received;
    std::size_t at = 0;
    while (received.size() < sent.size()) {
      const std::size_t head = std::min<std::size_t>(random() % 50, sent.size() - at);
      const std::size_t body = std::min<std::size_t>(random() % 200'000, sent.size() - at - head);
      auto* data = const_cast<std::byte*>(sent.data()) + at;
      const std::array<iovec, 2> parts = {{{data, head}, {data + head, body}}};
      const ssize_t taken = head + body == 0 ? 0 : from->send(parts, head + body);
      if (taken > 0) at += static_cast<std::size_t>(taken);
      ASSERT_TRUE(taken >= 0 || errno == EAGAIN);
      ASSERT_TRUE(from->flush());
      Bytes some(1 + random() % 100'000), more(1 + random() % 100);
      std::array<iovec, 2> buffers = {{{some.data(), some.size()}, {more.data(), more.size()}}};
      const ssize_t got = to.receive(buffers);
      ASSERT_TRUE(got > 0 || (got < 0 && errno == EAGAIN)) << got;
      for (std::size_t i = 0; got > 0 && i < static_cast<std::size_t>(got); ++i)
        received.push_back(i < some.size() ? some[i] : more[i - some.size()]);
    }
    EXPECT_TRUE(received == sent);
  }
}

TEST_P(ProtectedRecords, RejectReflectedData) {
  auto [first, second] = loopback_pair();
  ByteStream here(std::move(first), seal(), true),
      echoes(std::move(second), seal(), true);  // Both ends act as the caller.
  std::byte byte{42};
  std::array<iovec, 1> part = {{{&byte, 1}}};
  ASSERT_EQ(here.send(part, 1), 1);
  ssize_t got = -1;
  do {
    got = echoes.receive(part);
  } while (got < 0 && errno == EAGAIN);
  EXPECT_EQ(got, -1);
  EXPECT_EQ(errno, EBADMSG);
}

INSTANTIATE_TEST_SUITE_P(All, ProtectedRecords, testing::Values(Protection::checked, Protection::encrypted),
                         [](const auto& given) {
                           return given.param == Protection::checked ? "checked" : "encrypted";
                         });

}  // namespace
}  // namespace tutti::test
