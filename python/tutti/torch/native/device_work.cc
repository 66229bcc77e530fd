#include "python/tutti/torch/native/device_work.h"

#include <ATen/core/ivalue.h>
#include <c10/core/StreamGuard.h>

#include <thread>

namespace tutti_torch {
namespace {

constexpr std::chrono::microseconds kPollInterval{100};

c10::impl::VirtualGuardImpl streams_of(c10::Device device) { return c10::impl::VirtualGuardImpl(device.type()); }

}  // namespace

DeviceWork::DeviceWork(const CallDescription& description, std::shared_ptr<Communicator> communicator)
    : Work(description.rank, description.type, description.title, description.inputs),
      communicator_(std::move(communicator)),
      outputs_(description.outputs),
      timeout_(description.timeout),
      sequence_(description.sequence),
      key_(new_completion_key()) {}

void DeviceWork::record(const c10::Stream& stream) {
  device_ = stream.device();
  end_ = std::make_shared<c10::Event>(stream.device_type());
  end_->record(stream);
  if (recordFunctionEndCallback_) recordFunctionEndCallback_();
}

bool DeviceWork::isCompleted() {
  if (failure() != nullptr) return true;
  if (!end_->query()) return false;
  succeeded_ = communicator_->failure() == nullptr;  // The report of a failure precedes the end of the call.
  return true;
}

std::exception_ptr DeviceWork::failure() const { return succeeded_ ? nullptr : communicator_->failure(); }

std::exception_ptr DeviceWork::exception() const {
  std::exception_ptr error = failure();
  if (error != nullptr) communicator_->note_raised();
  return error;
}

bool DeviceWork::wait(Milliseconds timeout) {
  if (timeout != kNoTimeout && !is_complete_within(timeout)) throw not_completed_error(timeout, rank_);
  synchronize();
  return true;
}

void DeviceWork::synchronize() {
  if (const std::exception_ptr error = exception()) std::rethrow_exception(error);
  end_->block(streams_of(device_).getStream(device_));
}

bool DeviceWork::is_complete_within(Milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!isCompleted()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kPollInterval);
  }
  return true;
}

Tensors DeviceWork::result() {
  TORCH_CHECK(outputs_.size() <= 1, "result() is for operations with one list of outputs; use get_future()");
  return outputs_.empty() ? Tensors() : outputs_[0];
}

c10::intrusive_ptr<c10::ivalue::Future> DeviceWork::getFuture() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (future_) return future_;
  future_ = c10::make_intrusive<c10::ivalue::Future>(type_of(outputs_), std::vector<c10::Device>{device_});
  if (const std::exception_ptr error = exception()) {
    future_->setError(error);
    return future_;
  }
  // The future records its events in the current stream.
  const c10::StreamGuard guard(streams_of(device_).getStreamFromGlobalPool(device_));
  end_->block(guard.current_stream());
  future_->markCompleted(value_of(outputs_));
  return future_;
}

}  // namespace tutti_torch
