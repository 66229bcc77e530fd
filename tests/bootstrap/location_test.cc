#include "src/bootstrap/location.h"

#include <gtest/gtest.h>

#include <string>

namespace tutti::test {
namespace {

Location somewhere() {
  Location location;
  location.domain = 3;
  location.wants_topology = 1;
  set_gpu(location, "0000:a4:00.0");
  return location;
}

TEST(Location, StoresGpu) {
  EXPECT_EQ(gpu_of(somewhere()), "0000:a4:00.0");
  EXPECT_EQ(validated(somewhere()), somewhere());
  EXPECT_EQ(gpu_of(Location()), "");
  EXPECT_EQ(validated(Location()), Location());
}

// A truncated name could be the name of another GPU.
TEST(Location, DropsName_WhenTooLong) {
  Location location = somewhere();
  set_gpu(location, std::string(23, 'x'));
  EXPECT_EQ(gpu_of(location), std::string(23, 'x'));
  set_gpu(location, std::string(24, 'x'));
  EXPECT_EQ(gpu_of(location), "");
}

TEST(Location, IsEmpty_WhenRecordIsInvalid) {
  Location wrong = somewhere();
  wrong.version = 1;
  EXPECT_EQ(validated(wrong), Location());
  wrong = somewhere();
  wrong.domain = 1U << 20;
  EXPECT_EQ(validated(wrong), Location());
  wrong = somewhere();
  wrong.wants_topology = 7;
  EXPECT_EQ(validated(wrong), Location());
  wrong = somewhere();
  wrong.instructions = number_of(Instructions::avx512) + 1;
  EXPECT_EQ(validated(wrong), Location());
  wrong = somewhere();
  wrong.gpu.fill('1');  // Not terminated.
  EXPECT_EQ(validated(wrong), Location());
  wrong = somewhere();
  wrong.gpu[2] = '\x1b';
  EXPECT_EQ(validated(wrong), Location());
}

}  // namespace
}  // namespace tutti::test
