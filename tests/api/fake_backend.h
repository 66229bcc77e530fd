// A backend that only records calls, for tests of the translation of API calls.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "src/api/comm_handle.h"
#include "src/communicator/membership/control_plane.h"

namespace tutti::test {

class FakeBackend final : public BlockingBackend {
 public:
  explicit FakeBackend(const Board& board) : board_(board) {}
  ~FakeBackend() override { EXPECT_EQ(asked, answered) << "destroyed while another thread is in failure()"; }

  Status run(const Call& call, const CommunicatorOptions& options) override {
    held.wait(true);
    calls.push_back(call);
    last_algorithm = options.algorithm;
    return Status(answer, answer == Code::ok ? "" : "as the test wants it");
  }
  Result<std::unique_ptr<Operation>> start(const Call& call, const CommunicatorOptions& options) override {
    TUTTI_CHECK_OK(run(call, options));
    return std::unique_ptr<Operation>(std::make_unique<Done>());
  }
  Result<double> predict_us(const Call& call, const CommunicatorOptions&) override {
    if (answer != Code::ok) return Status(answer, "as the test wants it");
    return static_cast<double>(call.count);
  }
  LastRun last_run() const override { return {}; }
  CompressionStatistics compression_statistics() const override { return {}; }
  Status failure() override {
    if (!asked.exchange(true)) {
      asked.notify_all();
      if (before_answer.valid()) before_answer.wait();
      answered = true;
    }
    if (aborted) return aborted_error("aborted by the test");
    return board_.failed() ? board_.failure(1) : Status();
  }
  void wait_for_remote_access() override {}
  Status finish() override { return {}; }
  Status await_leaving() override { return {}; }

  std::vector<Call> calls;
  std::string last_algorithm;
  Code answer = Code::ok;
  std::atomic<bool> aborted = false;
  std::atomic<bool> held = false;          // Calls block until release().
  std::shared_future<void> before_answer;  // If valid, the first failure() waits for it.
  std::atomic<bool> asked = false;         // The first failure() has begun.
  std::atomic<bool> answered = false;      // The first failure() has ended.

  void release() {
    held = false;
    held.notify_all();
  }

 private:
  struct Done final : Operation {
    Result<bool> advance() override { return true; }
    Status wait() override { return {}; }
  };
  const Board& board_;
};

// Creates rank 1 of 4 without its peers, whose calls go to `fake`, and returns a handle to it.
inline tutti_comm insert_fake(FakeBackend*& fake) {
  std::vector<Mesh> meshes = Mesh::within_process(Hosts::one_host(4)).value();
  auto control = std::make_shared<ControlPlane>(1, std::move(meshes[1]), Board::create(4).value(),
                                                CommunicatorOptions(), Spread::one_process);
  auto backend = std::make_unique<FakeBackend>(control->membership.board);
  fake = backend.get();
  auto handle = std::make_unique<CommHandle>();
  handle->shared = std::make_shared<SharedComm>();
  handle->shared->communicator = std::make_unique<Communicator>(std::move(control), std::move(backend));
  handle->runner = handle->shared->communicator.get();
  handle->rank = handle->runner.load()->rank();
  handle->ranks = handle->runner.load()->ranks();
  return static_cast<tutti_comm>(CommHandles::instance().insert(std::move(handle)).value());
}

// Fixture with a handle to a communicator with a fake backend.
class CommHandlesTest : public ::testing::Test {
 protected:
  CommHandlesTest() : comm_(insert_fake(fake_)) {}
  ~CommHandlesTest() override { tutti_comm_destroy(comm_); }

  tutti_status all_reduce(std::size_t count, tutti_stream stream = nullptr) {
    return tutti_all_reduce(memory_, memory_, count, tutti_float32, tutti_sum, comm_, stream);
  }
  static std::string last_error() { return tutti_last_error(nullptr); }

  FakeBackend* fake_ = nullptr;
  tutti_comm comm_;
  float memory_[64] = {};
};

}  // namespace tutti::test
