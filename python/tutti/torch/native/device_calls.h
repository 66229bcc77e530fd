#pragma once
// Calls of a process group on CUDA tensors: a communicator in the memory of a GPU, whose calls run in streams of
// PyTorch.

#include <c10/core/Stream.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "python/tutti/torch/native/device_work.h"

namespace tutti_torch {

enum class OpenCalls { kWait, kAbort };

// Thread-safe. Functions that may wait are called without the GIL.
class DeviceCalls {
 public:
  enum class Mode {
    kCurrentStream,  // Calls run in the current stream.
    kOwnStream,      // Calls run in a stream of the group, after earlier work of the current stream.
  };

  explicit DeviceCalls(std::shared_ptr<Hooks> hooks);
  ~DeviceCalls();
  DeviceCalls(const DeviceCalls&) = delete;
  DeviceCalls& operator=(const DeviceCalls&) = delete;

  // Returns whether it has a communicator. Throws if that is for another device, or has ended.
  bool is_on(c10::Device device, int rank) const;

  // Takes over the communicator for `device`.
  void use(std::shared_ptr<Communicator> communicator, c10::Device device);

  // Enqueues a call. Throws if it is rejected, and after a failure of an earlier call. Needs a communicator.
  DeviceWorkPtr start(const CallDescription& description, Mode mode, const CallWork::Body& body);

  // Returns an event of the work that is now in the current stream. Null without a communicator.
  std::shared_ptr<c10::Event> record_current_stream() const;

  // Waits until the calls so far are complete. Throws if one has failed.
  void synchronize();

  // Ends all waits of the communicator.
  void abort();

  // Ends the communicator, and refuses later calls. Idempotent.
  void end(OpenCalls calls);

 private:
  using Lock = std::lock_guard<std::mutex>;
  std::shared_ptr<Communicator> communicator() const;
  void report_completion(const DeviceWorkPtr& work);
  void watch(Communicator& communicator);

  const std::shared_ptr<Hooks> hooks_;
  std::mutex calling_;        // Held during calls: one thread at a time uses a communicator.
  mutable std::mutex mutex_;  // Guards the members below. Taken after calling_.
  std::shared_ptr<Communicator> communicator_;
  std::optional<c10::Stream> stream_;  // The group's own.
  std::shared_ptr<c10::Event> last_;   // End of the last call.
  bool is_ended_ = false;
  bool is_watched_ = false;
  // Notified when is_watched_ becomes false.
  std::unique_ptr<std::condition_variable> changed_ = std::make_unique<std::condition_variable>();
  std::thread watcher_;
  const int process_;
};

}  // namespace tutti_torch
