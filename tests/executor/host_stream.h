// Streams, events and graphs of a device that is threads of the host, after CUDA's rules.
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

// Whether a capture must end in the thread that began it, as CUDA's global and thread-local ones must.
enum class CaptureMode : std::uint8_t { global, thread_local_only, relaxed };

// Work and what it comes after, by index: lower than its own.
struct HostNode {
  std::function<Status()> work;
  std::set<std::size_t> after;
};

struct HostCapture;
class HostStream;

// What was captured. May end before its replays do.
class HostGraph {
 public:
  struct Work {
    std::vector<HostNode> nodes;
    std::vector<std::shared_ptr<void>> kept;  // For the nodes.
  };
  explicit HostGraph(Work work) : work_(std::make_shared<const Work>(std::move(work))) {}

  // In the stream's turn; what does not come after each other, side by side.
  Status replay(HostStream& stream) const;

 private:
  std::shared_ptr<const Work> work_;  // Shared with the replays in streams.
};

// Any thread. A DeviceStream of a HostDevice is a pointer to one.
class HostStream {
 public:
  enum class Kind : std::uint8_t { null, made };  // The null stream cannot be captured.

  explicit HostStream(Kind kind);
  ~HostStream();  // Does what was put first. One that is being captured breaks the capture.
  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;

  // Does it in its turn, or notes it down while the stream is being captured.
  Status put(std::function<Status()> work);
  // Waits for all that was put; the first failure since the last time.
  Status synchronize();
  // Marks the end of what it does, not of what is being captured.
  void mark(Event& event) { event.record(*queue_); }

  Status begin_capture(CaptureMode mode);
  // Also of the streams that joined, all of whose work must have been joined back.
  Result<HostGraph> end_capture();
  // Its number, 0: none. Fails once something went wrong in it.
  Result<std::uint64_t> capture() const;
  // With what is being captured.
  Status keep(std::shared_ptr<void> kept);

 private:
  friend class HostEvent;
  friend struct HostCapture;

  const Kind kind_;
  std::shared_ptr<HostCapture> capture_;  // Shared by the streams and events that are part of it.
  std::set<std::size_t> tips_;            // What comes next in the capture comes after these.
  std::unique_ptr<Stream> queue_;
};

class HostEvent final : public DeviceEvent {
 public:
  // `null`: what a null stream means. `alive`: how many there are.
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
  std::shared_ptr<HostCapture> capture_;  // In which it was last recorded; null: in none.
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
