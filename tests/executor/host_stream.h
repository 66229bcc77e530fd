// Streams, events and graphs of the GPU emulator, with CUDA's rules.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/communicator/stream.h"
#include "src/executor/thread_block/device.h"

namespace tutti::test {

// Whether a capture must end in the thread that began it, like CUDA's global and thread-local ones.
enum class CaptureMode : std::uint8_t { global, thread_local_only, relaxed };

// Work and its predecessors, by index: lower than its own.
struct HostNode {
  std::function<Status()> work;
  std::set<std::size_t> after;
};

struct HostCapture;
class HostStream;

// A captured graph. May be destroyed before its replays end.
class HostGraph {
 public:
  struct Work {
    std::vector<HostNode> nodes;
    std::vector<std::shared_ptr<void>> kept;  // Kept for the nodes.
  };
  explicit HostGraph(Work work) : work_(std::make_shared<const Work>(std::move(work))) {}

  // Runs in stream order; independent nodes run concurrently.
  Status replay(HostStream& stream) const;

 private:
  std::shared_ptr<const Work> work_;  // Shared with the replays in streams.
};

// Any thread. A DeviceStream of a HostDevice is a pointer to one.
class HostStream {
 public:
  enum class Kind : std::uint8_t { null, made };  // The null stream cannot be captured.

  explicit HostStream(Kind kind);
  ~HostStream();  // Completes earlier work. Destroying a captured stream breaks the capture.
  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;

  // Runs the work in stream order, or records it during a capture.
  Status put(std::function<Status()> work);
  // Waits for all work; returns the first failure since the last call.
  Status synchronize();
  // Completes with the running work, not with captured work.
  void mark(Event& event) { event.record(*queue_); }

  Status begin_capture(CaptureMode mode);
  // Also for the joined streams, whose work must have been joined back.
  Result<HostGraph> end_capture();
  // Number of the capture; 0: none. Fails after an error in the capture.
  Result<std::uint64_t> capture() const;
  // Kept with the captured work.
  Status keep(std::shared_ptr<void> kept);

 private:
  friend class HostEvent;
  friend struct HostCapture;

  const Kind kind_;
  std::shared_ptr<HostCapture> capture_;  // Shared by the streams and events of the capture.
  std::set<std::size_t> tips_;            // Predecessors of the next captured node.
  std::unique_ptr<Stream> queue_;
};

class HostEvent final : public DeviceEvent {
 public:
  // `null`: the stream that a null pointer means. `alive`: counts live objects.
  HostEvent(HostStream& null, std::shared_ptr<std::atomic<std::uint64_t>> alive);
  ~HostEvent() override { --*alive_; }

  Status record(DeviceStream stream) override;
  Status hold(DeviceStream stream) override;
  Result<bool> reached() override;

 private:
  HostStream& stream_of(DeviceStream stream) { return stream == nullptr ? null_ : *static_cast<HostStream*>(stream); }

  HostStream& null_;
  std::shared_ptr<std::atomic<std::uint64_t>> alive_;
  Event mark_;
  std::shared_ptr<HostCapture> capture_;  // The capture in which it was last recorded; null: none.
  std::set<std::size_t> tips_;
};

// Fails in a stream that is being captured.
class HostTimer final : public DeviceTimer {
 public:
  HostTimer(HostStream& null, std::shared_ptr<std::atomic<std::uint64_t>> alive);
  ~HostTimer() override { --*alive_; }

  Status begin(DeviceStream stream) override;
  Status end(DeviceStream stream) override;
  Result<std::optional<std::int64_t>> took_ns() override;

 private:
  struct Marks {
    std::atomic<std::int64_t> begin_ns{0}, end_ns{0};
  };
  Status mark(DeviceStream stream, std::atomic<std::int64_t> Marks::*which);

  HostStream& null_;
  std::shared_ptr<std::atomic<std::uint64_t>> alive_;
  std::shared_ptr<Marks> marks_;  // Shared with the work in streams, which may outlive the timer.
};

}  // namespace tutti::test
