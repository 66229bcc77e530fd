#include "src/base/status.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <new>
#include <stdexcept>

#include "src/base/caught.h"

namespace tutti::test {
namespace {

TEST(Result, HoldsValueOrError) {
  const Result<int> value = 7;
  EXPECT_TRUE(value.ok());
  EXPECT_EQ(value.value(), 7);
  Result<int> failure = timeout_error("no rank joined");
  EXPECT_FALSE(failure.ok());
  EXPECT_EQ(std::move(failure).status().during("waiting").message(), "no rank joined; while waiting");
}

TEST(Status, KeepsCodeAndText_WhenMemoryIsExhausted) {
  Status status = out_of_memory();
  EXPECT_EQ(status.code(), Code::system);
  EXPECT_EQ(status.message(), "out of memory");
  EXPECT_EQ(std::move(status).during("joining").message(), "out of memory; while joining");
  EXPECT_EQ(out_of_memory().message(), "out of memory");  // The shared text was not changed.
}

TEST(SystemError, NamesLimit_WhenNoMoreFilesCanBeOpened) {
  errno = EMFILE;
  const Status status = system_error("open an eventfd");
  EXPECT_EQ(status.os_error(), EMFILE);
  EXPECT_EQ(status.message().find("open an eventfd: Too many open files: the limit of this process is "), 0U);
  EXPECT_TRUE(status.message().ends_with(", raise it with ulimit -n")) << status.message();
  errno = ENOENT;
  EXPECT_EQ(system_error("open x").message(), "open x: No such file or directory");
}

TEST(Caught, TurnsExceptionsIntoErrors) {
  EXPECT_EQ(caught([]() -> Status { throw std::bad_alloc(); }).message(), "out of memory");
  const Status other = caught([]() -> Status { throw std::out_of_range("index 7"); });
  EXPECT_EQ(other.code(), Code::internal);
  EXPECT_EQ(other.message(), "index 7");
}

// A Result made of success without a value would be contradictory: ok() returns false, and its status reports success.
TEST(ResultDeathTest, Dies_WhenMadeOfSuccessWithoutValue) {
  EXPECT_DEATH({ const Result<int> neither = Status(); }, "!std::get<1>\\(state_\\).ok\\(\\)");
}

}  // namespace
}  // namespace tutti::test
