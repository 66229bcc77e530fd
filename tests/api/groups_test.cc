// Group: which calls they hold until their end, and how they run them.
#include <gtest/gtest.h>

#include <thread>

#include "tests/api/fake_backend.h"
#include "tutti/tutti.h"

namespace tutti::test {
namespace {

class GroupTest : public CommHandlesTest {};

TEST_F(GroupTest, HoldsCallsUntilOutermostEnd) {
  EXPECT_EQ(tutti_group_end(), tutti_invalid_usage);
  tutti_group_start();
  EXPECT_EQ(all_reduce(1), tutti_ok);
  tutti_group_start();
  EXPECT_EQ(all_reduce(2), tutti_ok);
  EXPECT_EQ(tutti_group_end(), tutti_ok);
  EXPECT_TRUE(fake_->calls.empty());
  EXPECT_EQ(tutti_group_end(), tutti_ok);
  ASSERT_EQ(fake_->calls.size(), 2U);
  EXPECT_EQ(fake_->calls[1].count, 2U);
}

// For libraries on top, whose own calls may fail in a group.
TEST_F(GroupTest, IsCancelledByReportedError) {
  tutti_group_start();
  EXPECT_EQ(tutti_report("wrap", tutti_ok, ""), tutti_ok);
  EXPECT_EQ(all_reduce(1), tutti_ok);
  EXPECT_EQ(tutti_report("wrap", tutti_system_error, "no file"), tutti_system_error);
  EXPECT_EQ(tutti_group_end(), tutti_system_error);
  EXPECT_STREQ(tutti_last_error(nullptr), "tutti_group_end: wrap: no file");
  EXPECT_TRUE(fake_->calls.empty());
}

// The fake predicts as many microseconds as there are elements.
TEST_F(GroupTest, SimulationRunsNothing) {
  FakeBackend* other_fake = nullptr;
  const tutti_comm other = insert_fake(other_fake);
  tutti_stream stream = nullptr;
  ASSERT_EQ(tutti_stream_create(&stream), tutti_ok);
  tutti_group_start();
  EXPECT_EQ(all_reduce(5), tutti_ok);
  EXPECT_EQ(all_reduce(7, stream), tutti_ok);
  EXPECT_EQ(tutti_all_reduce(memory_, memory_, 9, tutti_float32, tutti_sum, other, nullptr), tutti_ok);
  double time_us = -1;
  EXPECT_EQ(tutti_group_simulate_end(&time_us), tutti_ok);
  EXPECT_EQ(time_us, 12) << "one after the other, beside the other communicator's";
  EXPECT_EQ(tutti_group_end(), tutti_invalid_usage) << "the group is over";
  EXPECT_EQ(tutti_stream_synchronize(stream), tutti_ok);
  EXPECT_TRUE(fake_->calls.empty());
  EXPECT_TRUE(other_fake->calls.empty());
  EXPECT_EQ(tutti_stream_destroy(stream), tutti_ok);
  EXPECT_EQ(tutti_comm_destroy(other), tutti_ok);
}

TEST_F(GroupTest, SimulationRejectsEndOfCommunicators) {
  tutti_status (*const ends[])(tutti_comm) = {tutti_comm_finalize, tutti_comm_destroy, tutti_comm_leave};
  for (const auto end : ends) {
    tutti_group_start();
    EXPECT_EQ(all_reduce(1), tutti_ok);
    EXPECT_EQ(end(comm_), tutti_ok);
    double time_us = -1;
    EXPECT_EQ(tutti_group_simulate_end(&time_us), tutti_invalid_usage);
    EXPECT_NE(last_error().find("use tutti_group_end"), std::string::npos) << last_error();
    EXPECT_EQ(time_us, -1);
    EXPECT_EQ(tutti_group_end(), tutti_invalid_usage) << "the group is over";
    EXPECT_TRUE(fake_->calls.empty());
    EXPECT_EQ(all_reduce(1), tutti_ok) << "the communicator was not ended";
    fake_->calls.clear();
  }
}

TEST_F(GroupTest, SimulationCoversWholeGroup) {
  double time_us = -1;
  EXPECT_EQ(tutti_group_simulate_end(&time_us), tutti_invalid_usage);
  tutti_group_start();
  EXPECT_EQ(all_reduce(5), tutti_ok);
  EXPECT_EQ(tutti_group_simulate_end(nullptr), tutti_invalid_argument);
  tutti_group_start();
  EXPECT_EQ(tutti_group_simulate_end(&time_us), tutti_invalid_usage);
  EXPECT_NE(last_error().find("several groups are open"), std::string::npos) << last_error();
  EXPECT_EQ(time_us, -1);
  EXPECT_EQ(tutti_group_end(), tutti_ok);
  EXPECT_EQ(tutti_group_simulate_end(&time_us), tutti_ok);
  EXPECT_EQ(time_us, 5);
  tutti_group_start();
  EXPECT_EQ(tutti_group_simulate_end(&time_us), tutti_ok);
  EXPECT_EQ(time_us, 0);
}

TEST_F(GroupTest, SimulationReportsErrorOnce) {
  double time_us = -1;
  tutti_group_start();
  EXPECT_EQ(all_reduce(1), tutti_ok);
  EXPECT_EQ(tutti_all_reduce(nullptr, memory_, 1, tutti_float32, tutti_sum, comm_, nullptr), tutti_invalid_argument);
  EXPECT_EQ(tutti_group_simulate_end(&time_us), tutti_invalid_argument);
  tutti_group_start();
  EXPECT_EQ(all_reduce(1), tutti_ok);
  fake_->answer = Code::unsupported;
  EXPECT_EQ(tutti_group_simulate_end(&time_us), tutti_unsupported);
  EXPECT_EQ(time_us, -1);
  fake_->answer = Code::ok;
  EXPECT_EQ(all_reduce(1), tutti_ok) << "the communicator is well, and no group is open";
  EXPECT_EQ(fake_->calls.size(), 1U);
}

// A group ignores failures of functions that it does not defer, since a program may expect them.
TEST_F(GroupTest, RunsDespiteFailureOfOtherFunctions) {
  tutti_comm made = nullptr;
  tutti_group_start();
  EXPECT_EQ(all_reduce(1), tutti_ok);
  EXPECT_EQ(tutti_comm_create_all(1, nullptr, &made), tutti_invalid_usage);
  EXPECT_EQ(tutti_comm_split(comm_, 0, 0, nullptr, &made), tutti_invalid_usage);
  EXPECT_EQ(tutti_mem_free(memory_), tutti_invalid_argument);
  EXPECT_EQ(tutti_comm_rank(comm_, nullptr), tutti_invalid_argument);
  EXPECT_EQ(tutti_group_end(), tutti_ok);
  EXPECT_EQ(fake_->calls.size(), 1U);
}

TEST_F(GroupTest, FinalizesAfterItsCalls) {
  tutti_comm view = nullptr;
  ASSERT_EQ(tutti_comm_with_options(comm_, nullptr, &view), tutti_ok);
  tutti_group_start();
  EXPECT_EQ(all_reduce(1), tutti_ok);
  EXPECT_EQ(tutti_comm_finalize(comm_), tutti_ok);
  EXPECT_EQ(all_reduce(2), tutti_ok);
  EXPECT_EQ(tutti_group_end(), tutti_ok);
  EXPECT_EQ(fake_->calls.size(), 2U);
  EXPECT_EQ(all_reduce(3), tutti_invalid_usage);
  tutti_group_start();
  EXPECT_EQ(tutti_comm_destroy(comm_), tutti_ok);
  EXPECT_EQ(tutti_comm_destroy(view), tutti_ok);
  EXPECT_EQ(tutti_group_end(), tutti_ok);
  int rank = 0;
  EXPECT_EQ(tutti_comm_rank(comm_, &rank), tutti_invalid_argument);
  EXPECT_EQ(tutti_comm_rank(view, &rank), tutti_invalid_argument);
}

// The caller of tutti_comm_destroy() has already given up the handle.
TEST_F(GroupTest, DestroysHandles_EvenIfItFails) {
  tutti_group_start();
  EXPECT_EQ(tutti_comm_finalize(comm_), tutti_ok);
  EXPECT_EQ(tutti_comm_destroy(comm_), tutti_ok);
  EXPECT_EQ(tutti_comm_destroy(comm_), tutti_invalid_usage);
  EXPECT_EQ(tutti_group_end(), tutti_invalid_usage);
  EXPECT_EQ(all_reduce(1), tutti_invalid_argument);
}

TEST_F(GroupTest, DestroysHandles_WhenAnotherThreadDestroyedOne) {
  FakeBackend* fake = nullptr;
  const tutti_comm gone = insert_fake(fake);
  tutti_group_start();
  EXPECT_EQ(tutti_comm_destroy(gone), tutti_ok);
  EXPECT_EQ(tutti_comm_destroy(comm_), tutti_ok);
  std::thread([&] { EXPECT_EQ(tutti_comm_destroy(gone), tutti_ok); }).join();
  EXPECT_EQ(tutti_group_end(), tutti_invalid_argument);
  EXPECT_EQ(all_reduce(1), tutti_invalid_argument);
}

// The fake is rank 1.
TEST_F(GroupTest, AcceptsMatchingMessagesToSelf) {
  const auto send = [&] { EXPECT_EQ(tutti_send(memory_, 1, tutti_float32, 1, comm_, nullptr), tutti_ok); };
  const auto recv = [&] { EXPECT_EQ(tutti_recv(memory_, 1, tutti_float32, 1, comm_, nullptr), tutti_ok); };
  tutti_group_start();
  recv();
  send();
  EXPECT_EQ(all_reduce(1), tutti_ok);
  send();
  recv();
  EXPECT_EQ(tutti_group_end(), tutti_ok);
  EXPECT_EQ(fake_->calls.size(), 5U);

  tutti_group_start();
  send();
  EXPECT_EQ(tutti_group_end(), tutti_invalid_usage);
  EXPECT_NE(last_error().find("rank 1 sends itself 1 messages and receives 0"), std::string::npos) << last_error();
  tutti_group_start();
  send();
  EXPECT_EQ(all_reduce(1), tutti_ok);
  recv();
  EXPECT_EQ(tutti_group_end(), tutti_invalid_usage);
  EXPECT_NE(last_error().find("no collective of the communicator between"), std::string::npos) << last_error();
  EXPECT_EQ(fake_->calls.size(), 5U);
}

TEST_F(GroupTest, RunsNothing_WhenCallIsInvalid) {
  tutti_group_start();
  EXPECT_EQ(all_reduce(1), tutti_ok);
  EXPECT_EQ(tutti_send(memory_, 1, tutti_float32, 9, comm_, nullptr), tutti_invalid_argument);
  EXPECT_EQ(tutti_group_end(), tutti_invalid_argument);
  EXPECT_NE(last_error().find("peer 9"), std::string::npos) << last_error();
  EXPECT_TRUE(fake_->calls.empty());
  tutti_group_start();
  EXPECT_EQ(all_reduce(1), tutti_ok);
  EXPECT_EQ(tutti_all_to_all_v(memory_, nullptr, nullptr, memory_, nullptr, nullptr, tutti_float32, comm_, nullptr),
            tutti_invalid_argument);
  EXPECT_EQ(tutti_group_end(), tutti_invalid_argument);
  EXPECT_TRUE(fake_->calls.empty());
  tutti_group_start();
  EXPECT_EQ(tutti_group_end(), tutti_ok);  // The group is empty again.
}

}  // namespace
}  // namespace tutti::test
