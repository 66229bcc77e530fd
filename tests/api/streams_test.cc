// Streams and events: the order of their calls, and destruction while other threads use them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <thread>
#include <vector>

#include "tests/api/fake_backend.h"
#include "tutti/tutti.h"

namespace tutti::test {
namespace {

class StreamTest : public CommHandlesTest {};

TEST_F(StreamTest, KeepsOrder_OfStreamAndBlockingCalls) {
  tutti_stream first = nullptr, second = nullptr;
  ASSERT_EQ(tutti_stream_create(&first), tutti_ok);
  ASSERT_EQ(tutti_stream_create(&second), tutti_ok);
  std::vector<std::uint64_t> counts;
  for (std::size_t i = 0; i < 300; ++i) {
    const tutti_stream streams[] = {first, second, nullptr};
    ASSERT_EQ(all_reduce(i, streams[i * i % 3]), tutti_ok);
  }
  EXPECT_EQ(tutti_stream_synchronize(first), tutti_ok);
  EXPECT_EQ(tutti_stream_synchronize(second), tutti_ok);
  EXPECT_EQ(tutti_stream_query(first), tutti_ok);
  ASSERT_EQ(fake_->calls.size(), 300U);
  for (std::size_t i = 0; i < 300; ++i) EXPECT_EQ(fake_->calls[i].count, i);
  EXPECT_EQ(tutti_stream_destroy(first), tutti_ok);
  EXPECT_EQ(tutti_stream_destroy(second), tutti_ok);
}

TEST_F(StreamTest, CommSynchronizeWaitsForAllStreams) {
  tutti_stream first = nullptr, second = nullptr;
  ASSERT_EQ(tutti_stream_create(&first), tutti_ok);
  ASSERT_EQ(tutti_stream_create(&second), tutti_ok);
  for (std::size_t i = 0; i < 100; ++i) ASSERT_EQ(all_reduce(i, i % 2 == 0 ? first : second), tutti_ok);
  EXPECT_EQ(tutti_comm_synchronize(comm_), tutti_ok);
  EXPECT_EQ(fake_->calls.size(), 100U);
  EXPECT_EQ(tutti_comm_synchronize(nullptr), tutti_invalid_argument);
  EXPECT_EQ(tutti_stream_destroy(first), tutti_ok);
  EXPECT_EQ(tutti_stream_destroy(second), tutti_ok);
}

TEST_F(StreamTest, GroupJoinsItsStreams) {
  tutti_stream first = nullptr, second = nullptr;
  ASSERT_EQ(tutti_stream_create(&first), tutti_ok);
  ASSERT_EQ(tutti_stream_create(&second), tutti_ok);
  const std::size_t ones[4] = {1, 1, 1, 1}, offsets[4] = {0, 1, 2, 3};
  fake_->held = true;
  tutti_group_start();
  EXPECT_EQ(all_reduce(1, first), tutti_ok);
  {
    const std::size_t copied[4] = {1, 1, 1, 1};
    EXPECT_EQ(tutti_all_to_all_v(memory_, copied, offsets, memory_ + 8, ones, offsets, tutti_float32, comm_, second),
              tutti_ok);
  }
  EXPECT_EQ(tutti_group_end(), tutti_ok);
  EXPECT_EQ(tutti_stream_query(first), tutti_in_progress);  // The query of either stream reports the group.
  EXPECT_EQ(tutti_stream_query(second), tutti_in_progress);
  fake_->release();
  EXPECT_EQ(tutti_stream_synchronize(second), tutti_ok);
  ASSERT_EQ(fake_->calls.size(), 2U);
  EXPECT_EQ(fake_->calls[1].kind, Kind::all_to_all_v);

  fake_->answer = Code::remote;
  EXPECT_EQ(all_reduce(1, first), tutti_ok);
  tutti_status state = tutti_in_progress;
  while (state == tutti_in_progress) state = tutti_stream_query(first);
  EXPECT_EQ(state, tutti_remote_error);
  EXPECT_EQ(tutti_stream_synchronize(first), tutti_remote_error) << "a query forgets nothing";
  EXPECT_EQ(tutti_stream_synchronize(first), tutti_ok);
  EXPECT_EQ(tutti_stream_destroy(first), tutti_ok);
  EXPECT_EQ(tutti_stream_destroy(second), tutti_ok);
}

TEST_F(StreamTest, ReachesEventsInOrder) {
  tutti_stream stream = nullptr, other = nullptr;
  tutti_event event = nullptr;
  ASSERT_EQ(tutti_stream_create(&stream), tutti_ok);
  ASSERT_EQ(tutti_stream_create(&other), tutti_ok);
  ASSERT_EQ(tutti_event_create(&event), tutti_ok);
  EXPECT_EQ(tutti_event_query(event), tutti_ok);  // The event was never recorded.
  fake_->held = true;
  EXPECT_EQ(all_reduce(1, stream), tutti_ok);
  EXPECT_EQ(tutti_event_record(event, stream), tutti_ok);
  EXPECT_EQ(tutti_event_query(event), tutti_in_progress);
  EXPECT_EQ(tutti_stream_wait(other, event), tutti_ok);
  EXPECT_EQ(tutti_stream_query(other), tutti_in_progress);
  fake_->release();
  EXPECT_EQ(tutti_event_destroy(event), tutti_ok);  // The wait keeps its recorded point.
  EXPECT_EQ(tutti_stream_synchronize(other), tutti_ok);
  EXPECT_EQ(fake_->calls.size(), 1U);
  EXPECT_EQ(tutti_event_query(event), tutti_invalid_argument);
  EXPECT_EQ(tutti_event_record(event, stream), tutti_invalid_argument);
  EXPECT_EQ(tutti_stream_destroy(stream), tutti_ok);
  EXPECT_EQ(tutti_stream_destroy(other), tutti_ok);
}

// Statuses that callbacks have received, and the message that they saw.
struct Seen {
  tutti_stream stream = nullptr;
  std::vector<tutti_status> statuses;
  std::string message;
  std::vector<tutti_status> nested;  // Results of the functions that the callback called.
};

void record_status(void* argument, tutti_status status) {
  auto* seen = static_cast<Seen*>(argument);
  seen->statuses.push_back(status);
  if (status != tutti_ok) seen->message = tutti_last_error(nullptr);
}

TEST_F(StreamTest, CallbackReceivesFirstErrorSincePreviousCallback) {
  Seen seen;
  ASSERT_EQ(tutti_stream_create(&seen.stream), tutti_ok);
  EXPECT_EQ(tutti_stream_add_callback(seen.stream, nullptr, &seen), tutti_invalid_argument);
  EXPECT_EQ(tutti_stream_add_callback(nullptr, record_status, &seen), tutti_invalid_argument);
  EXPECT_EQ(all_reduce(1, seen.stream), tutti_ok);
  EXPECT_EQ(tutti_stream_add_callback(seen.stream, record_status, &seen), tutti_ok);
  EXPECT_EQ(tutti_stream_synchronize(seen.stream), tutti_ok);
  fake_->answer = Code::remote;
  EXPECT_EQ(all_reduce(2, seen.stream), tutti_ok);
  EXPECT_EQ(tutti_stream_add_callback(seen.stream, record_status, &seen), tutti_ok);
  EXPECT_EQ(tutti_stream_add_callback(seen.stream, record_status, &seen), tutti_ok);
  EXPECT_EQ(tutti_stream_synchronize(seen.stream), tutti_remote_error) << "a callback takes no error from synchronize";
  EXPECT_EQ(seen.statuses, (std::vector{tutti_ok, tutti_remote_error, tutti_ok}));
  EXPECT_NE(seen.message.find("as the test wants it"), std::string::npos) << seen.message;
  EXPECT_EQ(tutti_stream_destroy(seen.stream), tutti_ok);
}

TEST_F(StreamTest, CallbackRunsAfterEarlierAndBeforeLaterCalls) {
  struct Order {
    FakeBackend* fake = nullptr;
    std::size_t calls_before = 0;
  } order = {.fake = fake_};
  tutti_stream stream = nullptr;
  ASSERT_EQ(tutti_stream_create(&stream), tutti_ok);
  fake_->held = true;
  EXPECT_EQ(all_reduce(1, stream), tutti_ok);
  const auto count_calls = [](void* argument, tutti_status) {
    auto* seen = static_cast<Order*>(argument);
    seen->calls_before = seen->fake->calls.size();
  };
  EXPECT_EQ(tutti_stream_add_callback(stream, count_calls, &order), tutti_ok);
  EXPECT_EQ(all_reduce(2, stream), tutti_ok);
  EXPECT_EQ(order.calls_before, 0U);
  fake_->release();
  EXPECT_EQ(tutti_stream_synchronize(stream), tutti_ok);
  EXPECT_EQ(order.calls_before, 1U);
  EXPECT_EQ(tutti_stream_destroy(stream), tutti_ok);
}

// A blocking call in the callback would wait for the call that is enqueued behind the callback.
TEST_F(StreamTest, CallbackMayEnqueueCallsButNotWait) {
  struct Nested : Seen {
    tutti_comm comm = nullptr;
    float value = 0;
    tutti_status all_reduce(std::size_t count, tutti_stream in) {
      return tutti_all_reduce(&value, &value, count, tutti_float32, tutti_sum, comm, in);
    }
  } seen;
  seen.comm = comm_;
  ASSERT_EQ(tutti_stream_create(&seen.stream), tutti_ok);
  const auto call_functions = [](void* argument, tutti_status) {
    auto* in = static_cast<Nested*>(argument);
    in->nested = {in->all_reduce(1, nullptr),
                  tutti_stream_synchronize(in->stream),
                  tutti_stream_destroy(in->stream),
                  tutti_comm_synchronize(in->comm),
                  tutti_comm_destroy(in->comm),
                  tutti_group_start(),
                  tutti_comm_split(in->comm, 0, 0, nullptr, &in->comm)};
    in->statuses = {in->all_reduce(7, in->stream), tutti_stream_query(in->stream)};
  };
  fake_->held = true;
  EXPECT_EQ(all_reduce(1, seen.stream), tutti_ok);  // Delays the callback until the next call is enqueued.
  EXPECT_EQ(tutti_stream_add_callback(seen.stream, call_functions, static_cast<Nested*>(&seen)), tutti_ok);
  EXPECT_EQ(all_reduce(2, seen.stream), tutti_ok);
  fake_->release();
  EXPECT_EQ(tutti_stream_synchronize(seen.stream), tutti_ok);
  EXPECT_EQ(tutti_stream_synchronize(seen.stream), tutti_ok);
  EXPECT_EQ(seen.nested, std::vector(7, tutti_invalid_usage));
  EXPECT_EQ(seen.statuses, (std::vector{tutti_ok, tutti_in_progress}));
  ASSERT_EQ(fake_->calls.size(), 3U);
  EXPECT_EQ(fake_->calls[2].count, 7U);
  EXPECT_EQ(all_reduce(3, nullptr), tutti_ok) << "the restrictions end with the callback";
  EXPECT_EQ(tutti_stream_destroy(seen.stream), tutti_ok);
}

TEST_F(StreamTest, EventSynchronizeForLeavesCallRunning_WhenTimePasses) {
  tutti_stream stream = nullptr;
  tutti_event event = nullptr;
  ASSERT_EQ(tutti_stream_create(&stream), tutti_ok);
  ASSERT_EQ(tutti_event_create(&event), tutti_ok);
  EXPECT_EQ(tutti_event_synchronize_for(event, 0), tutti_ok);  // The event was never recorded.
  EXPECT_EQ(tutti_event_synchronize_for(event, -2), tutti_invalid_argument);
  EXPECT_EQ(last_error(), "tutti_event_synchronize_for: timeout_ms is -2: pass 0 or more, or -1 for no limit");
  fake_->held = true;
  EXPECT_EQ(all_reduce(1, stream), tutti_ok);
  EXPECT_EQ(tutti_event_record(event, stream), tutti_ok);
  EXPECT_EQ(tutti_event_synchronize_for(event, 0), tutti_in_progress);
  EXPECT_EQ(tutti_event_synchronize_for(event, 1), tutti_in_progress);
  fake_->release();
  EXPECT_EQ(tutti_event_synchronize_for(event, INT64_MAX), tutti_ok);
  EXPECT_EQ(fake_->calls.size(), 1U);
  EXPECT_EQ(tutti_event_destroy(event), tutti_ok);
  EXPECT_EQ(tutti_event_synchronize_for(event, 0), tutti_invalid_argument);
  EXPECT_EQ(tutti_stream_destroy(stream), tutti_ok);
}

// Other threads use a handle that one thread destroys and recreates repeatedly. Each call succeeds or reports an
// invalid handle.
template <typename Handle, typename Use>
void use_while_replaced(tutti_status (*create)(Handle*), tutti_status (*destroy)(Handle), const Use& use) {
  Handle made = nullptr;
  ASSERT_EQ(create(&made), tutti_ok);
  std::atomic<Handle> current = made;
  std::atomic<bool> ended = false;
  std::atomic<std::uint32_t> uses = 0, wrong = 0;
  std::vector<std::thread> users;
  for (int i = 0; i < 2; ++i) {
    users.emplace_back([&] {
      while (!ended) {
        wrong += use(current.load()) ? 0 : 1;
        ++uses;
      }
    });
  }
  for (int round = 0; round < 300; ++round) {
    EXPECT_EQ(create(&made), tutti_ok);
    EXPECT_EQ(destroy(current.exchange(made)), tutti_ok);
    for (const std::uint32_t before = uses; uses == before;) std::this_thread::yield();
  }
  ended = true;
  for (std::thread& user : users) user.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(destroy(current), tutti_ok);
}

bool is_one_of(tutti_status status, std::initializer_list<tutti_status> allowed) {
  return std::find(allowed.begin(), allowed.end(), status) != allowed.end();
}

TEST_F(StreamTest, KeepsEventAlive_WhileCallUsesIt) {
  tutti_stream stream = nullptr;
  ASSERT_EQ(tutti_stream_create(&stream), tutti_ok);
  use_while_replaced(tutti_event_create, tutti_event_destroy, [&](tutti_event event) {
    return is_one_of(tutti_event_record(event, stream), {tutti_ok, tutti_invalid_argument}) &&
           is_one_of(tutti_event_query(event), {tutti_ok, tutti_in_progress, tutti_invalid_argument}) &&
           is_one_of(tutti_stream_wait(stream, event), {tutti_ok, tutti_invalid_argument}) &&
           is_one_of(tutti_event_synchronize(event), {tutti_ok, tutti_invalid_argument});
  });
  EXPECT_EQ(tutti_stream_destroy(stream), tutti_ok);
}

TEST_F(StreamTest, StaysAlive_WhileCallUsesIt) {
  tutti_event event = nullptr;
  ASSERT_EQ(tutti_event_create(&event), tutti_ok);
  use_while_replaced(tutti_stream_create, tutti_stream_destroy, [&](tutti_stream stream) {
    return is_one_of(tutti_event_record(event, stream), {tutti_ok, tutti_invalid_argument}) &&
           is_one_of(tutti_stream_query(stream), {tutti_ok, tutti_in_progress, tutti_invalid_argument}) &&
           is_one_of(tutti_stream_synchronize(stream), {tutti_ok, tutti_invalid_argument});
  });
  EXPECT_EQ(tutti_event_destroy(event), tutti_ok);
}

TEST_F(StreamTest, SplitRunsAfterWorkInStreams) {
  tutti_stream stream = nullptr;
  tutti_comm part = nullptr;
  ASSERT_EQ(tutti_stream_create(&stream), tutti_ok);
  fake_->held = true;
  EXPECT_EQ(all_reduce(1, stream), tutti_ok);
  EXPECT_EQ(all_reduce(2, stream), tutti_ok);
  std::atomic<bool> done = false;
  const auto shared = CommHandles::instance().find(comm_)->shared;
  std::thread releasing([&] {  // Releases the fake after the split has queued, or has run.
    while (shared->queued < 3 && !done) std::this_thread::yield();
    fake_->release();
  });
  EXPECT_EQ(tutti_comm_split(comm_, 1, 0, nullptr, &part), tutti_ok);  // The peers are not there, and have color 0.
  done = true;
  releasing.join();
  EXPECT_EQ(tutti_stream_destroy(stream), tutti_ok);
  ASSERT_EQ(fake_->calls.size(), 3U);
  EXPECT_EQ(fake_->calls[2].collective, Collective::all_gather);  // The split gathers the colors.
  EXPECT_EQ(all_reduce(3), tutti_ok);                             // The split has released its place in the queue.
  EXPECT_EQ(tutti_comm_destroy(part), tutti_ok);
}

}  // namespace
}  // namespace tutti::test
