#include "src/base/status.h"

#include <gtest/gtest.h>

namespace tutti::test {
namespace {

TEST(Result, HoldsAValueOrAFailure) {
  const Result<int> value = 7;
  EXPECT_TRUE(value.ok());
  EXPECT_EQ(value.value(), 7);
  Result<int> failure = timeout_error("nobody came");
  EXPECT_FALSE(failure.ok());
  EXPECT_EQ(std::move(failure).status().during("waiting").message(), "nobody came; while waiting");
}

// It would be neither: ok() says no, and its status says that nothing failed.
TEST(ResultDeathTest, IsNotMadeOfSuccessWithoutAValue) {
  EXPECT_DEATH({ const Result<int> neither = Status(); }, "!std::get<1>\\(state_\\).ok\\(\\)");
}

}  // namespace
}  // namespace tutti::test
