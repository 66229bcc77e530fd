// Completion functions of messages with tags, and the destruction of their requests.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/api/requests.h"

namespace tutti::test {
namespace {

struct Completion {
  std::atomic<int> status = -1;
  std::string error;
  static void note(void* self, tutti_status status) {
    auto& completion = *static_cast<Completion*>(self);
    if (status != tutti_ok) completion.error = last_error();
    completion.status = status;
  }
};

TEST(Requests, CallFunctionWithStatusAndMessage) {
  const Ranks ranks(2);
  Completion completion;
  std::vector<std::int32_t> received(2);
  const tutti_request receive = irecv(received, 0, 7, ranks[1]);
  TUTTI_EXPECT_OK(tutti_request_on_completion(receive, Completion::note, &completion));
  EXPECT_EQ(completion.status, -1);
  EXPECT_EQ(outcome(isend({1}, 1, 7, ranks[0])), "ok");
  while (completion.status == -1) std::this_thread::yield();
  EXPECT_EQ(completion.status, tutti_invalid_usage);
  EXPECT_EQ(completion.error,
            "tutti_request_on_completion: rank 1 called irecv(2 int32, from rank 0, tag 7), but rank 0 called isend(1 "
            "int32, to rank 1, tag 7): counts and types must be equal");
  EXPECT_EQ(tutti_request_on_completion(receive, Completion::note, &completion), tutti_invalid_usage);
  TUTTI_EXPECT_OK(tutti_request_destroy(receive));
}

TEST(Requests, ReportFailureOfCommunicatorToFunction) {
  std::vector<tutti_comm> comms(2);
  TUTTI_EXPECT_OK(tutti_comm_create_all(2, nullptr, comms.data()));
  Completion completion;
  std::vector<std::int32_t> received(1);
  const tutti_request receive = irecv(received, 0, 7, comms[1]);
  TUTTI_EXPECT_OK(tutti_request_on_completion(receive, Completion::note, &completion));
  TUTTI_EXPECT_OK(tutti_comm_abort(comms[0]));
  while (completion.status == -1) std::this_thread::yield();
  EXPECT_EQ(completion.status, tutti_aborted);
  for (const tutti_comm comm : comms) TUTTI_EXPECT_OK(tutti_comm_destroy(comm));  // Does not return the failure again.
  TUTTI_EXPECT_OK(tutti_request_destroy(receive));
}

struct CallsWithinCallback {
  tutti_comm comm = nullptr;
  tutti_request own = nullptr, other = nullptr;
  std::string wait, own_wait, synchronize, destroy;
  std::atomic<bool> done = false;
  static std::string result(tutti_status status) { return status == tutti_ok ? "ok" : last_error(); }
  static void make(void* self, tutti_status) {
    auto& calls = *static_cast<CallsWithinCallback*>(self);
    calls.wait = result(tutti_request_wait(calls.other, 1, nullptr));
    calls.own_wait = result(tutti_request_wait(calls.own, 1, nullptr));
    calls.synchronize = result(tutti_comm_synchronize(calls.comm));
    calls.destroy = result(tutti_request_destroy(calls.other));
    calls.done = true;
  }
};

TEST(Requests, MustNotBeAwaitedInCallback) {
  const Ranks ranks(2);
  std::vector<std::int32_t> received(1);
  for (const bool complete_before : {false, true}) {
    CallsWithinCallback calls;
    calls.comm = ranks[1];
    calls.own = irecv(received, 0, 7, ranks[1]);
    calls.other = irecv(received, 0, 8, ranks[1]);
    if (complete_before) {
      EXPECT_EQ(outcome(isend({1}, 1, 7, ranks[0])), "ok");
      TUTTI_EXPECT_OK(tutti_request_wait(calls.own, kHangMs, nullptr));
    }
    TUTTI_EXPECT_OK(tutti_group_start());
    TUTTI_EXPECT_OK(tutti_request_on_completion(calls.own, CallsWithinCallback::make, &calls));
    TUTTI_EXPECT_OK(tutti_group_end());  // The callback restores the group.
    if (!complete_before) {
      EXPECT_EQ(outcome(isend({1}, 1, 7, ranks[0])), "ok");
    }
    while (!calls.done) std::this_thread::yield();
    EXPECT_EQ(calls.wait.find("tutti_request_wait: a callback must not wait, but a timeout other than 0 does"), 0U);
    EXPECT_EQ(calls.own_wait, "ok");
    EXPECT_NE(calls.synchronize, "ok");
    EXPECT_EQ(calls.destroy, "ok");
    TUTTI_EXPECT_OK(tutti_request_destroy(calls.own));
  }
}

// A completion function that runs while another thread destroys its request.
struct SlowCompletion {
  std::atomic<bool> runs = false, is_awaited = false, returns = false;
  static void run(void* self, tutti_status) {
    auto& completion = *static_cast<SlowCompletion*>(self);
    completion.runs = true;
    while (!completion.is_awaited) std::this_thread::yield();
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    completion.returns = true;
  }
};

TEST(Requests, AreDestroyedAfterCompletionFunctionHasReturned) {
  const Ranks ranks(2);
  SlowCompletion completion;
  std::vector<std::int32_t> received(1);
  const tutti_request receive = irecv(received, 0, 7, ranks[1]);
  TUTTI_EXPECT_OK(tutti_request_on_completion(receive, SlowCompletion::run, &completion));
  EXPECT_EQ(outcome(isend({1}, 1, 7, ranks[0])), "ok");
  while (!completion.runs) std::this_thread::yield();
  completion.is_awaited = true;
  TUTTI_EXPECT_OK(tutti_request_destroy(receive));
  EXPECT_TRUE(completion.returns);
}

struct DestroyingCompletion {
  tutti_request own = nullptr;
  std::string destroy;
  std::atomic<bool> done = false;
  static void run(void* self, tutti_status) {
    auto& completion = *static_cast<DestroyingCompletion*>(self);
    completion.destroy = tutti_request_destroy(completion.own) == tutti_ok ? "ok" : last_error();
    completion.done = true;
  }
};

TEST(Requests, CanBeDestroyedByTheirCompletionFunction) {
  const Ranks ranks(2);
  DestroyingCompletion completion;
  std::vector<std::int32_t> received(1);
  completion.own = irecv(received, 0, 7, ranks[1]);
  TUTTI_EXPECT_OK(tutti_request_on_completion(completion.own, DestroyingCompletion::run, &completion));
  EXPECT_EQ(outcome(isend({1}, 1, 7, ranks[0])), "ok");
  while (!completion.done) std::this_thread::yield();
  EXPECT_EQ(completion.destroy, "ok");
  EXPECT_EQ(tutti_request_destroy(completion.own), tutti_invalid_argument);
}

// Completion functions in two threads, each of which destroys the request of the other one.
struct MutualCompletion {
  std::atomic<int>& running;
  std::atomic<int>& returned;
  tutti_request other = nullptr;
  std::string destroy;
  static void run(void* self, tutti_status) {
    auto& completion = *static_cast<MutualCompletion*>(self);
    ++completion.running;
    while (completion.running < 2) std::this_thread::yield();
    completion.destroy = tutti_request_destroy(completion.other) == tutti_ok ? "ok" : last_error();
    ++completion.returned;
    while (completion.returned < 2) std::this_thread::yield();
  }
};

TEST(Requests, AreNotDestroyedInCallback_WhileTheirCompletionFunctionRunsInAnotherThread) {
  const Ranks ranks(2);
  std::vector<std::int32_t> received[2] = {{0}, {0}};
  const tutti_request requests[] = {irecv(received[0], 0, 7, ranks[1]), irecv(received[1], 0, 8, ranks[1])};
  std::atomic<int> running = 0, returned = 0;
  MutualCompletion completions[] = {{running, returned, requests[1], ""}, {running, returned, requests[0], ""}};
  for (const std::uint64_t tag : {7, 8}) EXPECT_EQ(outcome(isend({1}, 1, tag, ranks[0])), "ok");
  for (const tutti_request request : requests) TUTTI_EXPECT_OK(tutti_request_wait(request, kHangMs, nullptr));
  std::thread second([&] { tutti_request_on_completion(requests[1], MutualCompletion::run, &completions[1]); });
  TUTTI_EXPECT_OK(tutti_request_on_completion(requests[0], MutualCompletion::run, &completions[0]));
  second.join();
  for (const MutualCompletion& completion : completions) {
    EXPECT_EQ(completion.destroy.find("tutti_request_destroy: a callback must not wait, but destroying a request whose "
                                      "completion function runs in another thread does"),
              0U);
  }
  for (const tutti_request request : requests) TUTTI_EXPECT_OK(tutti_request_destroy(request));
}

TEST(Requests, AreCancelledByDestroy) {
  const Ranks ranks(2);
  Completion completions[2];
  std::vector<std::int32_t> received(1);
  const std::vector<std::int32_t> sent(kLarge);
  const tutti_request requests[] = {irecv(received, 0, 7, ranks[1]), isend(sent, 1, 8, ranks[0])};
  for (int i = 0; i < 2; ++i) {
    TUTTI_EXPECT_OK(tutti_request_on_completion(requests[i], Completion::note, &completions[i]));
    TUTTI_EXPECT_OK(tutti_request_destroy(requests[i]));
    EXPECT_EQ(completions[i].status, tutti_aborted);
    EXPECT_EQ(tutti_request_wait(requests[i], 0, nullptr), tutti_invalid_argument);
  }
  exchange(ranks[0], ranks[1], 7, 1);
  exchange(ranks[0], ranks[1], 8, 2);
}

}  // namespace
}  // namespace tutti::test
