// A communicator that only records calls, for tests of the translation of API calls.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "src/api/comm_handle.h"
#include "src/communicator/control/board.h"

namespace tutti::test {

class FakeCommunicator final : public Communicator {
 public:
  Rank rank() const override { return 1; }
  Rank ranks() const override { return 4; }
  bool on_one_host() const override { return true; }
  const CommunicatorOptions& options() const override { return options_; }
  const Board& board() const override { return board_; }
  void announce(CallRecord&) override {}

  Result<double> predict_us(const Call& call, const CommunicatorOptions&) override {
    if (answer != Code::ok) return Status(answer, "as the test wants it");
    return static_cast<double>(call.count);
  }
  Status run(const Call& call, const CommunicatorOptions* options) override {
    held.wait(true);
    calls.push_back(call);
    last_algorithm = options == nullptr ? options_.algorithm : options->algorithm;
    return Status(answer, answer == Code::ok ? "" : "as the test wants it");
  }
  Result<std::unique_ptr<Operation>> start(const Call& call, const CommunicatorOptions* options) override {
    TUTTI_CHECK_OK(run(call, options));
    return std::unique_ptr<Operation>(std::make_unique<Done>());
  }
  std::uint64_t take_ticket() override { return tickets_++; }
  Status await_ticket(std::uint64_t ticket) override {
    for (std::uint64_t before = awaited; before < ticket && !awaited.compare_exchange_weak(before, ticket);) {
    }
    for (std::uint64_t served = served_; served != ticket; served = served_) served_.wait(served);
    return {};
  }
  void finish_ticket() override {
    ++served_;
    served_.notify_all();
  }
  Result<std::unique_ptr<Communicator>> split(int color, int, const CommunicatorOptions&) override {
    calls_before_split = calls.size();
    if (color < 0) return std::unique_ptr<Communicator>();
    return std::unique_ptr<Communicator>(std::make_unique<FakeCommunicator>());
  }
  Result<std::unique_ptr<Communicator>> shrink(const std::vector<Rank>&, const CommunicatorOptions&) override {
    return std::unique_ptr<Communicator>(std::make_unique<FakeCommunicator>());
  }
  Status pass(Rank, int) override { return {}; }
  Result<File> take_passed(Rank) override { return File(); }
  Status finalize() override { return {}; }
  Status leave() override { return {}; }
  void abort() override { aborted = true; }
  Status fail(Status status) override { return status; }
  Status call_off(const Status& reason) override { return {reason.code(), reason.message()}; }
  void wait_for_remote_access() override {}
  Status failure() override { return aborted ? aborted_error("aborted by the test") : Status(); }

  std::vector<Call> calls;
  std::size_t calls_before_split = 0;
  std::string last_algorithm;
  Code answer = Code::ok;
  std::atomic<bool> aborted = false;
  std::atomic<bool> held = false;          // Calls block until release().
  std::atomic<std::uint64_t> awaited = 0;  // Highest ticket that a thread has waited for.

  void release() {
    held = false;
    held.notify_all();
  }

 private:
  struct Done final : Operation {
    Result<bool> advance() override { return true; }
    Status wait() override { return {}; }
  };
  CommunicatorOptions options_;
  Board board_;
  std::atomic<std::uint64_t> tickets_ = 0, served_ = 0;
};

// Creates a fake communicator, stores it in `fake`, and returns a handle to it.
inline tutti_comm insert_fake(FakeCommunicator*& fake) {
  auto communicator = std::make_unique<FakeCommunicator>();
  fake = communicator.get();
  auto handle = std::make_unique<CommHandle>();
  handle->runner = communicator.get();
  handle->rank = communicator->rank();
  handle->ranks = communicator->ranks();
  handle->shared = std::make_shared<SharedComm>();
  handle->shared->communicator = std::move(communicator);
  return static_cast<tutti_comm>(CommHandles::instance().insert(std::move(handle)).value());
}

// Fixture with a handle to a fake communicator.
class CommHandlesTest : public ::testing::Test {
 protected:
  CommHandlesTest() : comm_(insert_fake(fake_)) {}
  ~CommHandlesTest() override { tutti_comm_destroy(comm_); }

  tutti_status all_reduce(std::size_t count, tutti_stream stream = nullptr) {
    return tutti_all_reduce(memory_, memory_, count, tutti_float32, tutti_sum, comm_, stream);
  }
  static std::string last_error() { return tutti_last_error(nullptr); }

  FakeCommunicator* fake_ = nullptr;
  tutti_comm comm_;
  float memory_[64] = {};
};

}  // namespace tutti::test
