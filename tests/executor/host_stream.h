// Streams, events and graphs of the GPU emulator, with the semantics of CUDA.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/communicator/call/stream.h"
#include "src/executor/thread_block/device.h"

namespace tutti::test {

// Modes of a capture, like those of CUDA. Global and thread-local captures must end in the thread that began them.
enum class CaptureMode : std::uint8_t { global, thread_local_only, relaxed };

// Work, and the indices of its predecessors, which are lower than its own index.
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
    std::vector<std::shared_ptr<void>> kept;  // Objects that live as long as the nodes.
    // Events that a replay waits for before its first node, and records after its last.
    std::vector<std::shared_ptr<Event>> held, recorded;
  };
  explicit HostGraph(Work work) : work_(std::make_shared<const Work>(std::move(work))) {}

  // Enqueues the graph in the stream. Independent nodes run concurrently.
  Status replay(HostStream& stream) const;

 private:
  std::shared_ptr<const Work> work_;  // Shared with the replays in streams.
};

// Thread-safe. A DeviceStream of a HostDevice is a pointer to a HostStream.
class HostStream {
 public:
  enum class Kind : std::uint8_t { null, made };  // The null stream cannot be captured.

  explicit HostStream(Kind kind);
  ~HostStream();  // Waits for its work. Destroying a captured stream invalidates the capture.
  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;

  // Runs the work in stream order, or records it during a capture.
  Status put(std::function<Status()> work);
  // Waits for all work; returns the first failure since the last call.
  Status synchronize();
  // Records the event after the enqueued work; captured work does not count.
  void mark(Event& event) { event.record(*queue_); }
  // Makes later work wait for the event.
  void hold(const Event& event) { event.hold(*queue_); }

  Status begin_capture(CaptureMode mode);
  // Ends the capture in all streams that joined it. Their work must have been joined back to this stream.
  Result<HostGraph> end_capture();
  // Returns the number of the current capture, or 0. Fails after an error in the capture.
  Result<std::uint64_t> capture() const;
  // Extends the lifetime of an object to that of the captured work.
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
  // `null`: stream that null pointers stand for. `alive`: number of live objects.
  HostEvent(HostStream& null, std::shared_ptr<std::atomic<std::uint64_t>> alive);
  ~HostEvent() override { --*alive_; }

  Status record(DeviceStream stream) override;
  Status hold(DeviceStream stream) override;
  // Less precise than CUDA: a replay waits before all its work, and moves the mark after all of it.
  Status record_in_replays(DeviceStream stream) override;
  Status hold_in_replays(DeviceStream stream) override;
  Result<bool> reached() override;

 private:
  HostStream& stream_of(DeviceStream stream) { return stream == nullptr ? null_ : *static_cast<HostStream*>(stream); }

  HostStream& null_;
  std::shared_ptr<std::atomic<std::uint64_t>> alive_;
  std::shared_ptr<Event> mark_;           // Shared with graphs.
  std::shared_ptr<HostCapture> capture_;  // Capture in which the event was last recorded, or null.
  std::set<std::size_t> tips_;
};

// Functions fail in a stream that is being captured.
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
