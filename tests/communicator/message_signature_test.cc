// Signatures of messages: what a receiver can tell from them.
#include "src/communicator/call/message_signature.h"

#include <gtest/gtest.h>

namespace tutti::test {
namespace {

Call message_of(Kind kind, std::uint64_t count, DataType type) {
  Call call;
  call.kind = kind;
  call.count = count;
  call.type = type;
  call.root = 3;
  return call;
}

TEST(MessageSignature, DiffersByCountAndType) {
  const std::uint32_t signature = message_signature(message_of(Kind::send, 20, DataType::int32));
  EXPECT_EQ(signature, message_signature(message_of(Kind::recv, 20, DataType::int32)));
  EXPECT_NE(signature, message_signature(message_of(Kind::send, 21, DataType::int32)));
  EXPECT_NE(signature, message_signature(message_of(Kind::send, 20, DataType::float32)));
}

TEST(MessageSignature, DescribesMessage) {
  const Call call = message_of(Kind::send, 20, DataType::int32);
  EXPECT_EQ(describe_message(call), "send(20 int32, to rank 3)");
  EXPECT_EQ(describe_message(message_of(Kind::recv, 20, DataType::int32)), "recv(20 int32, from rank 3)");
  EXPECT_EQ(describe_send(message_signature(call), 1), "send(20 int32, to rank 1)");
  const Call complex = message_of(Kind::send, 7, DataType::complex128);
  EXPECT_EQ(describe_send(message_signature(complex), 1), "send(7 complex128, to rank 1)");
}

TEST(MessageSignature, DescribesTypeOnly_WhenCountIsLarge) {
  constexpr std::uint64_t kMany = std::uint64_t{1} << 26;
  const std::uint32_t signature = message_signature(message_of(Kind::send, kMany, DataType::int32));
  EXPECT_NE(signature, message_signature(message_of(Kind::send, kMany + 1, DataType::int32)));
  EXPECT_EQ(describe_elements(signature), "another count, of 2^26 or more int32");
}

TEST(MessageSignature, CountsSlots) {
  constexpr std::uint32_t kSlotBytes = 1024;  // 128 elements of 4 bytes in each slice.
  const auto slots = [](std::uint64_t count) {
    return slices_of(message_signature(message_of(Kind::send, count, DataType::int32)), kSlotBytes);
  };
  EXPECT_EQ(slice_elements(kSlotBytes, 4), 128U);
  EXPECT_EQ(slots(0), 1U);
  EXPECT_EQ(slots(128), 1U);
  EXPECT_EQ(slots(129), 2U);
  EXPECT_EQ(slices_of(~0U, kSlotBytes), 1U);  // The type is unknown.
}

}  // namespace
}  // namespace tutti::test
