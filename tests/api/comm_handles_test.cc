#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "tests/api/fake_backend.h"
#include "tutti/tutti.h"

namespace tutti::test {
namespace {

class CommHandleTest : public CommHandlesTest {};

TEST_F(CommHandleTest, ForwardsCallUnchanged) {
  ASSERT_EQ(tutti_reduce(memory_, nullptr, 5, tutti_bfloat16, tutti_max, 3, comm_, nullptr), tutti_ok);
  ASSERT_EQ(fake_->calls.size(), 1U);
  const Call& call = fake_->calls[0];
  EXPECT_EQ(call.kind, Kind::collective);
  EXPECT_EQ(call.collective, Collective::reduce);
  EXPECT_EQ(call.type, DataType::bfloat16);
  EXPECT_EQ(call.reduction, Reduction::max);
  EXPECT_EQ(call.root, 3U);
  EXPECT_EQ(call.count, 5U);
  EXPECT_EQ(static_cast<const void*>(call.input), memory_);
}

struct BadCall {
  const char* expected;  // Part of the error message.
  std::function<tutti_status(tutti_comm, float*)> make;
};

TEST_F(CommHandleTest, ReportsInvalidArguments) {
  const BadCall bad_calls[] = {
      {"tutti_all_reduce: send is null but count is 8",
       [](tutti_comm c, float* m) { return tutti_all_reduce(nullptr, m, 8, tutti_float32, tutti_sum, c, nullptr); }},
      {"recv is null",
       [](tutti_comm c, float* m) { return tutti_all_reduce(m, nullptr, 8, tutti_float32, tutti_sum, c, nullptr); }},
      {"a buffer of 4 * count",
       [](tutti_comm c, float* m) { return tutti_all_gather(m, nullptr, 8, tutti_float32, c, nullptr); }},
      {"invalid data type 17",
       [](tutti_comm c, float* m) { return tutti_all_gather(m, m, 8, static_cast<tutti_type>(17), c, nullptr); }},
      {"invalid reduction 8",
       [](tutti_comm c, float* m) { return tutti_all_reduce(m, m, 8, tutti_float32, 8, c, nullptr); }},
      {"invalid reduction -1",
       [](tutti_comm c, float* m) { return tutti_all_reduce(m, m, 8, tutti_float32, -1, c, nullptr); }},
      {"root 4 is out of range",
       [](tutti_comm c, float* m) { return tutti_broadcast(m, m, 8, tutti_float32, 4, c, nullptr); }},
      {"root -1 is out of range",
       [](tutti_comm c, float* m) { return tutti_gather(m, m, 8, tutti_float32, -1, c, nullptr); }},
      {"peer 9 is out of range", [](tutti_comm c, float* m) { return tutti_send(m, 8, tutti_float32, 9, c, nullptr); }},
      {"is more elements than",
       [](tutti_comm c, float* m) {
         return tutti_broadcast(m, m, static_cast<std::size_t>(-2), tutti_float32, 0, c, nullptr);
       }},
      {"send_counts is null",
       [](tutti_comm c, float* m) {
         const std::size_t four[4] = {};
         return tutti_all_to_all_v(m, nullptr, four, m, four, four, tutti_float32, c, nullptr);
       }},
  };
  for (const BadCall& bad : bad_calls) {
    EXPECT_EQ(bad.make(comm_, memory_), tutti_invalid_argument) << bad.expected;
    EXPECT_NE(last_error().find(bad.expected), std::string::npos)
        << last_error() << "\nshould contain " << bad.expected;
  }
  EXPECT_TRUE(fake_->calls.empty());
}

TEST_F(CommHandleTest, AcceptsNullForUnusedBuffers) {  // The fake is rank 1 of 4.
  EXPECT_EQ(tutti_broadcast(nullptr, memory_, 8, tutti_float32, 0, comm_, nullptr), tutti_ok);
  EXPECT_EQ(tutti_reduce(memory_, nullptr, 8, tutti_float32, tutti_sum, 0, comm_, nullptr), tutti_ok);
  EXPECT_EQ(tutti_scatter(nullptr, memory_, 8, tutti_float32, 0, comm_, nullptr), tutti_ok);
  EXPECT_EQ(tutti_gather(memory_, nullptr, 8, tutti_float32, 0, comm_, nullptr), tutti_ok);
  EXPECT_EQ(tutti_all_reduce(nullptr, nullptr, 0, tutti_float32, tutti_sum, comm_, nullptr), tutti_ok);
  EXPECT_EQ(tutti_broadcast(nullptr, memory_, 8, tutti_float32, 1, comm_, nullptr), tutti_invalid_argument);
  EXPECT_EQ(tutti_gather(memory_, nullptr, 8, tutti_float32, 1, comm_, nullptr), tutti_invalid_argument);
}

TEST_F(CommHandleTest, RejectsInvalidHandles) {
  FakeBackend* fake = nullptr;
  const tutti_comm gone = insert_fake(fake);
  ASSERT_EQ(tutti_comm_destroy(gone), tutti_ok);
  tutti_stream stream = nullptr;
  ASSERT_EQ(tutti_stream_create(&stream), tutti_ok);
  int rank = 0;
  for (const tutti_comm comm : {tutti_comm(nullptr), gone, reinterpret_cast<tutti_comm>(stream),
                                reinterpret_cast<tutti_comm>(memory_), reinterpret_cast<tutti_comm>(~0UL)}) {
    EXPECT_EQ(tutti_comm_rank(comm, &rank), tutti_invalid_argument);
    EXPECT_EQ(tutti_all_reduce(memory_, memory_, 1, tutti_float32, tutti_sum, comm, nullptr), tutti_invalid_argument);
    EXPECT_EQ(tutti_comm_abort(comm), tutti_invalid_argument);
    EXPECT_STREQ(tutti_last_error(comm), comm == nullptr ? last_error().c_str() : "");
  }
  EXPECT_EQ(tutti_comm_destroy(gone), tutti_invalid_argument);
  EXPECT_EQ(all_reduce(1, reinterpret_cast<tutti_stream>(comm_)), tutti_invalid_argument);
  EXPECT_EQ(tutti_stream_destroy(stream), tutti_ok);
  EXPECT_EQ(all_reduce(1, stream), tutti_invalid_argument);
}

TEST_F(CommHandleTest, IsInvalid_InForkedChild) {
  const pid_t child = ::fork();
  if (child == 0) {
    const bool refused = all_reduce(1) == tutti_invalid_argument && last_error().find("fork") != std::string::npos;
    ::_exit(refused && fake_->calls.empty() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(all_reduce(1), tutti_ok);
}

TEST_F(CommHandleTest, ReportsErrorOfCommunicator) {
  tutti_status error = tutti_internal_error;
  EXPECT_EQ(tutti_comm_async_error(comm_, &error), tutti_ok);
  EXPECT_EQ(error, tutti_ok);
  EXPECT_STREQ(tutti_last_error(comm_), "");
  EXPECT_EQ(tutti_comm_abort(comm_), tutti_ok);
  EXPECT_EQ(tutti_comm_async_error(comm_, &error), tutti_ok);
  EXPECT_EQ(error, tutti_aborted);
  EXPECT_STREQ(tutti_last_error(comm_), "rank 1 aborted the communicator");
  fake_->answer = Code::timeout;
  EXPECT_EQ(all_reduce(1), tutti_timeout);
  EXPECT_EQ(last_error(), "tutti_all_reduce: as the test wants it");
}

TEST_F(CommHandleTest, KeepsErrorTextUntilDestroyed) {
  const char* none = tutti_last_error(comm_);
  EXPECT_STREQ(none, "");
  EXPECT_EQ(tutti_comm_abort(comm_), tutti_ok);
  const char* text = tutti_last_error(comm_);
  EXPECT_STREQ(text, "rank 1 aborted the communicator");
  EXPECT_EQ(tutti_last_error(comm_), text);
  EXPECT_STREQ(none, "");
}

// On a GPU, the backend may wait for a record of a peer before it can explain a failure.
TEST_F(CommHandleTest, QuestionsDoNotBlockOtherCommunicators) {
  const std::function<void()> questions[] = {[&] { tutti_last_error(comm_); },
                                             [&] {
                                               tutti_status error;
                                               tutti_comm_async_error(comm_, &error);
                                             }};
  for (const auto& ask : questions) {
    fake_->asked = fake_->answered = false;
    std::promise<void> may_answer;
    fake_->before_answer = may_answer.get_future().share();
    std::thread asking(ask);
    fake_->asked.wait(false);
    auto others = std::async(std::launch::async, [] {
      FakeBackend* fake = nullptr;
      const tutti_comm other = insert_fake(fake);
      EXPECT_EQ(tutti_comm_abort(other), tutti_ok);
      EXPECT_STREQ(tutti_last_error(other), "rank 1 aborted the communicator");
      EXPECT_EQ(tutti_comm_destroy(other), tutti_ok);
    });
    auto abort = std::async(std::launch::async, [&] { return tutti_comm_abort(comm_); });
    EXPECT_EQ(others.wait_for(std::chrono::seconds(30)), std::future_status::ready);
    EXPECT_EQ(abort.wait_for(std::chrono::seconds(30)), std::future_status::ready);
    may_answer.set_value();
    asking.join();
    EXPECT_EQ(abort.get(), tutti_ok);
  }
}

TEST_F(CommHandleTest, DestroyWaitsForQuestionOfOtherThread) {
  std::promise<void> may_answer;
  fake_->before_answer = may_answer.get_future().share();
  std::thread asking([&] { EXPECT_STREQ(tutti_last_error(comm_), ""); });
  fake_->asked.wait(false);
  std::thread destroying([&] { EXPECT_EQ(tutti_comm_destroy(comm_), tutti_ok); });
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  const auto is_valid = [&] { return CommHandles::instance().find(comm_) != nullptr; };
  while (is_valid() && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  EXPECT_FALSE(is_valid()) << "destroy holds the table while it waits";
  may_answer.set_value();
  asking.join();
  destroying.join();
}

TEST_F(CommHandleTest, RejectsCalls_AfterFinalize) {
  EXPECT_EQ(tutti_comm_finalize(comm_), tutti_ok);
  EXPECT_EQ(all_reduce(1), tutti_invalid_usage);
  EXPECT_EQ(tutti_comm_finalize(comm_), tutti_invalid_usage);
  int ranks = 0;
  EXPECT_EQ(tutti_comm_ranks(comm_, &ranks), tutti_ok);
  EXPECT_EQ(ranks, 4);
}

// The fake is rank 1.
TEST_F(CommHandleTest, RejectsMessageToSelf_OutsideGroup) {
  tutti_stream stream = nullptr;
  ASSERT_EQ(tutti_stream_create(&stream), tutti_ok);
  for (const tutti_stream where : {tutti_stream(nullptr), stream}) {
    EXPECT_EQ(tutti_send(memory_, 1, tutti_float32, 1, comm_, where), tutti_invalid_usage);
    EXPECT_NE(last_error().find("rank 1 sends to itself"), std::string::npos) << last_error();
    EXPECT_EQ(tutti_recv(memory_, 1, tutti_float32, 1, comm_, where), tutti_invalid_usage);
    EXPECT_NE(last_error().find("put the send and the recv in one group"), std::string::npos) << last_error();
  }
  EXPECT_EQ(tutti_stream_destroy(stream), tutti_ok);
  EXPECT_TRUE(fake_->calls.empty());
  EXPECT_EQ(tutti_send(memory_, 1, tutti_float32, 2, comm_, nullptr), tutti_ok);
  EXPECT_EQ(tutti_broadcast(memory_, memory_, 1, tutti_float32, 1, comm_, nullptr), tutti_ok);
}

TEST_F(CommHandleTest, KeepsErrorTextOfWrapper) {
  EXPECT_EQ(tutti_report("wrap", tutti_remote_error, "the other end"), tutti_remote_error);
  EXPECT_EQ(last_error(), "wrap: the other end");
  EXPECT_EQ(tutti_report("outer", tutti_timeout, tutti_last_error(nullptr)), tutti_timeout);
  EXPECT_EQ(last_error(), "outer: wrap: the other end");
}

TEST_F(CommHandleTest, RejectsTooManyRanks) {
  tutti_comm comm = nullptr;
  const tutti_unique_id id = {};
  EXPECT_EQ(tutti_comm_create(&id, 0, 65537, nullptr, &comm), tutti_invalid_argument);
  EXPECT_NE(last_error().find("at most 65536"), std::string::npos) << last_error();
}

TEST_F(CommHandleTest, RejectsRankOutOfRange) {
  tutti_comm comm = nullptr;
  const tutti_unique_id id = {};
  EXPECT_EQ(tutti_comm_create(&id, 3, 3, nullptr, &comm), tutti_invalid_argument);
  EXPECT_EQ(last_error(), "tutti_comm_create: rank is 3: pass 0 to 2");
  EXPECT_EQ(tutti_comm_create(&id, 1, 1, nullptr, &comm), tutti_invalid_argument);
  EXPECT_EQ(last_error(), "tutti_comm_create: rank is 1: pass 0");
}

TEST_F(CommHandleTest, DestroyReportsUnreportedFailure) {
  fake_->aborted = true;  // Aborted by a peer: no call of this rank has reported it.
  EXPECT_EQ(tutti_comm_destroy(comm_), tutti_aborted);
  EXPECT_EQ(tutti_comm_destroy(comm_), tutti_invalid_argument);
  const std::function<void()> reports[] = {[&] { EXPECT_EQ(all_reduce(1), tutti_aborted); },
                                           [&] { tutti_comm_abort(comm_); },
                                           [&] { EXPECT_STRNE(tutti_last_error(comm_), ""); },
                                           [&] {
                                             tutti_status error;
                                             EXPECT_EQ(tutti_comm_async_error(comm_, &error), tutti_ok);
                                           }};
  for (const auto& receive : reports) {
    comm_ = insert_fake(fake_);
    fake_->aborted = true;
    fake_->answer = Code::aborted;
    receive();
    EXPECT_EQ(tutti_comm_destroy(comm_), tutti_ok);
  }
}

TEST_F(CommHandleTest, CreateAllReturnsAllHandlesOrNone) {
  std::vector<void*> taken;
  for (int left = 4096 - 1; left > 2; --left)
    taken.push_back(CommHandles::instance().insert(std::make_unique<CommHandle>()).value());
  tutti_comm comms[3] = {};
  EXPECT_EQ(tutti_comm_create_all(3, nullptr, comms), tutti_invalid_usage);
  for (const tutti_comm comm : comms) EXPECT_EQ(comm, nullptr);
  EXPECT_EQ(tutti_comm_create_all(2, nullptr, comms), tutti_ok);  // The failed call has released all its handles.
  for (const tutti_comm comm : {comms[0], comms[1]}) EXPECT_EQ(tutti_comm_abort(comm), tutti_ok);
  for (const tutti_comm comm : {comms[0], comms[1]}) EXPECT_EQ(tutti_comm_destroy(comm), tutti_ok);
  for (void* handle : taken) CommHandles::instance().remove(handle);
}

TEST_F(CommHandleTest, KeepsScalarOfEnqueuedCall) {
  const float scalar = 2.5F;
  tutti_reduction reduction = 0;
  ASSERT_EQ(tutti_reduction_create_pre_mul_sum(&scalar, tutti_float32, comm_, &reduction), tutti_ok);
  EXPECT_EQ(tutti_all_reduce(memory_, memory_, 1, tutti_float64, reduction, comm_, nullptr), tutti_invalid_argument);
  tutti_group_start();
  EXPECT_EQ(tutti_all_reduce(memory_, memory_, 1, tutti_float32, reduction, comm_, nullptr), tutti_ok);
  EXPECT_EQ(tutti_reduction_destroy(reduction, comm_), tutti_ok);
  EXPECT_EQ(tutti_group_end(), tutti_ok);
  ASSERT_EQ(fake_->calls.size(), 1U);
  EXPECT_EQ(fake_->calls[0].reduction, Reduction::pre_mul_sum);
  EXPECT_EQ(fake_->calls[0].scalar, 2.5);
  EXPECT_EQ(tutti_reduction_destroy(reduction, comm_), tutti_invalid_argument);
  EXPECT_EQ(tutti_reduction_destroy(tutti_sum, comm_), tutti_invalid_argument);
}

TEST_F(CommHandleTest, RejectsReductionOfAnotherCommunicator) {
  FakeBackend* other_fake = nullptr;
  const tutti_comm other = insert_fake(other_fake);
  const float two = 2, ten = 10;
  tutti_reduction ours = 0, others = 0;
  ASSERT_EQ(tutti_reduction_create_pre_mul_sum(&two, tutti_float32, comm_, &ours), tutti_ok);
  ASSERT_EQ(tutti_reduction_create_pre_mul_sum(&ten, tutti_float32, other, &others), tutti_ok);
  EXPECT_EQ(tutti_all_reduce(memory_, memory_, 1, tutti_float32, others, comm_, nullptr), tutti_invalid_argument);
  EXPECT_NE(last_error().find("one created for this communicator"), std::string::npos);
  EXPECT_EQ(tutti_reduction_destroy(others, comm_), tutti_invalid_argument);
  EXPECT_EQ(tutti_comm_destroy(other), tutti_ok);
}

TEST_F(CommHandleTest, DecodesScalarsOfSmallFloats) {
  const struct {
    tutti_type type;
    std::uint16_t bits;
    double value;
  } scalars[] = {{tutti_float16, 0xc100, -2.5}, {tutti_float16, 0x0001, 5.9604644775390625e-08},
                 {tutti_bfloat16, 0x4020, 2.5}, {tutti_float8_e4m3, 0x7e, 448},
                 {tutti_float8_e4m3, 0xc4, -3}, {tutti_float8_e5m2, 0x41, 2.5}};
  for (const auto& scalar : scalars) {
    tutti_reduction reduction = 0;
    ASSERT_EQ(tutti_reduction_create_pre_mul_sum(&scalar.bits, scalar.type, comm_, &reduction), tutti_ok);
    ASSERT_EQ(tutti_all_reduce(memory_, memory_, 1, scalar.type, reduction, comm_, nullptr), tutti_ok);
    EXPECT_EQ(fake_->calls.back().scalar, scalar.value);
  }
}

TEST_F(CommHandleTest, ReadsUnalignedScalar) {
  const double parts[2] = {2.5, -3};
  char memory[sizeof parts + 1];
  std::memcpy(memory + 1, parts, sizeof parts);
  tutti_reduction reduction = 0;
  ASSERT_EQ(tutti_reduction_create_pre_mul_sum(memory + 1, tutti_complex128, comm_, &reduction), tutti_ok);
  ASSERT_EQ(tutti_all_reduce(memory_, memory_, 1, tutti_complex128, reduction, comm_, nullptr), tutti_ok);
  EXPECT_EQ(fake_->calls.back().scalar, 2.5);
  EXPECT_EQ(fake_->calls.back().imaginary_scalar, -3);
}

TEST_F(CommHandleTest, PassesAddressOfScalar) {
  float scalars[2] = {};
  tutti_reduction reduction = 0;
  ASSERT_EQ(tutti_reduction_create_pre_mul_sum_at(&scalars[1], tutti_float32, comm_, &reduction), tutti_ok);
  ASSERT_EQ(tutti_all_reduce(memory_, memory_, 1, tutti_float32, reduction, comm_, nullptr), tutti_ok);
  EXPECT_EQ(fake_->calls.back().reduction, Reduction::pre_mul_sum);
  EXPECT_EQ(fake_->calls.back().factor, reinterpret_cast<std::byte*>(&scalars[1]));
  const char* between = reinterpret_cast<const char*>(scalars) + 2;
  EXPECT_EQ(tutti_reduction_create_pre_mul_sum_at(between, tutti_float32, comm_, &reduction), tutti_invalid_argument);
  EXPECT_EQ(tutti_reduction_create_pre_mul_sum_at(nullptr, tutti_float32, comm_, &reduction), tutti_invalid_argument);
}

TEST_F(CommHandleTest, SplitReturnsNull_WithoutColor) {
  tutti_comm part = comm_;
  EXPECT_EQ(tutti_comm_split(comm_, TUTTI_COLOR_NONE, 0, nullptr, &part), tutti_ok);
  EXPECT_EQ(part, nullptr);
  EXPECT_EQ(tutti_comm_split(comm_, -2, 0, nullptr, &part), tutti_invalid_argument);
  ASSERT_EQ(tutti_comm_split(comm_, 1, 0, nullptr, &part), tutti_ok);
  EXPECT_EQ(tutti_comm_destroy(part), tutti_ok);
}

}  // namespace
}  // namespace tutti::test
