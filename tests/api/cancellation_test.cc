// pthread_cancel() on threads that wait in a call: the call completes, and the thread ends after it.
#include <pthread.h>

#include <atomic>

#include "tests/api/processes.h"

namespace tutti::test {
namespace {

// Data shared by the thread to be cancelled and the test.
struct Waiter {
  std::function<tutti_status()> call;
  std::atomic<bool> started{false};
  std::atomic<int> status{-1};
  std::atomic<bool> survived{false};
};

void* wait_in_call(void* argument) {
  auto& waiter = *static_cast<Waiter*>(argument);
  waiter.started = true;
  waiter.status = waiter.call();
  ::pthread_testcancel();
  waiter.survived = true;
  return nullptr;
}

// Returns the status of `call`, which waits until a timeout. Returns -1 if the thread did not reach the end of the
// call, -2 if the thread was not cancelled after it.
int cancel_in(std::function<tutti_status()> call) {
  Waiter waiter;
  waiter.call = std::move(call);
  pthread_t thread;
  if (::pthread_create(&thread, nullptr, wait_in_call, &waiter) != 0) return -3;
  while (!waiter.started) std::this_thread::yield();
  ::pthread_cancel(thread);
  void* result = nullptr;
  ::pthread_join(thread, &result);
  return waiter.survived || result != PTHREAD_CANCELED ? -2 : waiter.status.load();
}

// Runs in a child process, which may die by a signal. Rank 1 does not make the calls.
void expect_timeout(const std::function<tutti_status(tutti_comm comm, float* value)>& call) {
  const auto statuses = run_processes(1, [&](int) {
    tutti_comm comms[2];
    tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
    options.timeout_ms = 200;
    if (tutti_comm_create_all(2, &options, comms) != tutti_ok) return 1;
    float values[2] = {1, 2};
    const auto both_reduce = [&] {  // Prepares the call that waits.
      options.timeout_ms = 20'000;
      tutti_group_start();
      for (int i = 0; i < 2; ++i) {
        tutti_comm patient = nullptr;
        if (tutti_comm_with_options(comms[i], &options, &patient) != tutti_ok) return tutti_internal_error;
        tutti_all_reduce(&values[i], &values[i], 1, tutti_float32, tutti_sum, patient, nullptr);
      }
      return tutti_group_end();
    };
    for (int i = 0; i < 3; ++i) {
      if (both_reduce() != tutti_ok) return 2;
    }
    const int status = cancel_in([&] { return call(comms[0], values); });
    if (status != tutti_timeout) ::fprintf(stderr, "status %d\n", status);
    return status == tutti_timeout ? 0 : 3;
  });
  EXPECT_EQ(statuses.front(), 0);
}

TEST(Cancellation, IsDeferredToEndOf_Collective) {
  expect_timeout([](tutti_comm comm, float* value) {
    return tutti_all_reduce(value, value, 1, tutti_float32, tutti_sum, comm, nullptr);
  });
}

TEST(Cancellation, IsDeferredToEndOf_NewCollective) {
  expect_timeout(
      [](tutti_comm comm, float* value) { return tutti_all_gather(value, value, 1, tutti_float32, comm, nullptr); });
}

TEST(Cancellation, IsDeferredToEndOf_Message) {
  expect_timeout([](tutti_comm comm, float* value) { return tutti_recv(value, 1, tutti_float32, 1, comm, nullptr); });
}

TEST(Cancellation, IsDeferredToEndOf_StreamSynchronize) {
  expect_timeout([](tutti_comm comm, float* value) {
    tutti_stream stream = nullptr;
    if (tutti_stream_create(&stream) != tutti_ok) return tutti_internal_error;
    if (tutti_recv(value, 1, tutti_float32, 1, comm, stream) != tutti_ok) return tutti_internal_error;
    return tutti_stream_synchronize(stream);
  });
}

TEST(Cancellation, IsDeferredToEndOf_Finalize) {
  expect_timeout([](tutti_comm comm, float*) { return tutti_comm_finalize(comm); });
}

}  // namespace
}  // namespace tutti::test
