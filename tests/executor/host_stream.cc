#include "tests/executor/host_stream.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "src/base/clock.h"

namespace tutti::test {

// Guarded by `capturing`.
struct HostCapture {
  std::uint64_t number = 0;
  CaptureMode mode = CaptureMode::global;
  std::thread::id thread;
  HostStream* origin = nullptr;
  std::set<HostStream*> streams;  // The origin and the streams that joined.
  HostGraph::Work work;
  std::string broken;  // The first error. All later operations of the capture fail with it.
  bool ended = false;

  Status fail(const std::string& why) {
    if (broken.empty()) broken = why;
    return invalid_usage(why);
  }
  Status state() const { return broken.empty() ? Status() : invalid_usage("the capture is broken: " + broken); }
  void end() {
    ended = true;
    for (HostStream* stream : streams) {
      stream->capture_ = nullptr;
      stream->tips_.clear();
    }
    streams.clear();
  }
  // Returns whether all nodes precede the origin's end.
  bool joined() const;
};

namespace {

// Guards the capture state of all streams and events. One mutex suffices: captures span streams, and speed is
// irrelevant.
std::mutex capturing;
std::uint64_t captures = 0;

// Replays a graph with one thread per node.
class Replay {
 public:
  explicit Replay(const std::vector<HostNode>& nodes) : nodes_(nodes), done_(nodes.size()) {}

  Status run() {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < nodes_.size(); ++i) threads.emplace_back([this, i] { run_node(i); });
    for (std::thread& thread : threads) thread.join();
    return std::move(failure_);
  }

 private:
  void run_node(std::size_t i) {
    const std::set<std::size_t>& after = nodes_[i].after;
    std::unique_lock lock(mutex_);
    changed_.wait(lock,
                  [&] { return std::all_of(after.begin(), after.end(), [&](auto each) { return done_[each]; }); });
    lock.unlock();
    Status status = nodes_[i].work();
    lock.lock();
    if (failure_.ok()) failure_ = std::move(status);
    done_[i] = true;
    changed_.notify_all();
  }

  const std::vector<HostNode>& nodes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> done_;
  Status failure_;
};

}  // namespace

bool HostCapture::joined() const {
  const std::vector<HostNode>& nodes = work.nodes;
  std::set<std::size_t> before = origin->tips_;
  for (std::size_t i = nodes.size(); i-- > 0;) {
    if (!before.contains(i)) return false;
    before.insert(nodes[i].after.begin(), nodes[i].after.end());
  }
  return true;
}

Status HostGraph::replay(HostStream& stream) const {
  for (const auto& event : work_->held) stream.hold(*event);
  TUTTI_CHECK_OK(stream.put([work = work_] { return Replay(work->nodes).run(); }));
  for (const auto& event : work_->recorded) stream.mark(*event);
  return {};
}

HostStream::HostStream(Kind kind) : kind_(kind) {
  auto queue = Stream::create();
  TUTTI_ASSERT(queue.ok());
  queue_ = std::move(queue).value();
}

HostStream::~HostStream() {
  const std::lock_guard lock(capturing);
  const std::shared_ptr<HostCapture> capture = capture_;
  if (capture == nullptr) return;
  (void)capture->fail("a stream of it was destroyed");
  capture->streams.erase(this);
  if (capture->origin != this) return;
  capture->end();
  capture->work = {};
}

Status HostStream::put(std::function<Status()> work) {
  const std::lock_guard lock(capturing);
  if (capture_ == nullptr) {
    queue_->enqueue(std::move(work));
    return {};
  }
  TUTTI_CHECK_OK(capture_->state());
  std::vector<HostNode>& nodes = capture_->work.nodes;
  nodes.push_back({std::move(work), std::move(tips_)});
  tips_ = {nodes.size() - 1};
  return {};
}

Status HostStream::synchronize() {
  {
    const std::lock_guard lock(capturing);
    if (capture_ != nullptr) return capture_->fail("a stream that is being captured cannot be waited for");
  }
  return queue_->synchronize();
}

Status HostStream::begin_capture(CaptureMode mode) {
  const std::lock_guard lock(capturing);
  if (kind_ == Kind::null) return invalid_usage("the null stream cannot be captured");
  if (capture_ != nullptr) return invalid_usage("the stream is being captured already");
  capture_ = std::make_shared<HostCapture>();
  capture_->number = ++captures;
  capture_->mode = mode;
  capture_->thread = std::this_thread::get_id();
  capture_->origin = this;
  capture_->streams = {this};
  return {};
}

Result<HostGraph> HostStream::end_capture() {
  const std::lock_guard lock(capturing);
  const std::shared_ptr<HostCapture> capture = capture_;
  if (capture == nullptr) return invalid_usage("the stream is not being captured");
  if (capture->origin != this) return invalid_usage("the capture began in another stream");
  if (capture->mode != CaptureMode::relaxed && capture->thread != std::this_thread::get_id())
    return invalid_usage("the capture began in another thread");
  if (!capture->joined()) (void)capture->fail("a stream that joined it was not joined back");
  capture->end();
  HostGraph graph(std::exchange(capture->work, {}));
  TUTTI_CHECK_OK(capture->state());
  return graph;
}

Result<std::uint64_t> HostStream::capture() const {
  const std::lock_guard lock(capturing);
  if (capture_ == nullptr) return std::uint64_t{0};
  TUTTI_CHECK_OK(capture_->state());
  return capture_->number;
}

Status HostStream::keep(std::shared_ptr<void> kept) {
  const std::lock_guard lock(capturing);
  if (capture_ == nullptr) return invalid_usage("the stream is not being captured");
  TUTTI_CHECK_OK(capture_->state());
  capture_->work.kept.push_back(std::move(kept));
  return {};
}

HostEvent::HostEvent(HostStream& null, std::shared_ptr<std::atomic<std::uint64_t>> alive)
    : null_(null), alive_(std::move(alive)), mark_(std::make_shared<Event>()) {
  ++*alive_;
}

Status HostEvent::record(DeviceStream at) {
  HostStream& stream = stream_of(at);
  const std::lock_guard lock(capturing);
  if (stream.capture_ != nullptr) TUTTI_CHECK_OK(stream.capture_->state());
  capture_ = stream.capture_;
  tips_ = stream.tips_;
  if (capture_ == nullptr) mark_->record(*stream.queue_);
  return {};
}

Status HostEvent::hold(DeviceStream at) {
  HostStream& stream = stream_of(at);
  const std::lock_guard lock(capturing);
  if (capture_ == nullptr && stream.capture_ == nullptr) {
    mark_->hold(*stream.queue_);
    return {};
  }
  if (capture_ == nullptr) return stream.capture_->fail("a captured stream would wait for work that is not captured");
  if (capture_->ended) return invalid_usage("the event was recorded in a capture that has ended");
  TUTTI_CHECK_OK(capture_->state());
  if (stream.kind_ == HostStream::Kind::null) return capture_->fail("the null stream cannot join a capture");
  if (stream.capture_ != nullptr && stream.capture_ != capture_) {
    (void)stream.capture_->fail("another capture would be joined to it");
    return capture_->fail("it would be joined to another capture");
  }
  stream.capture_ = capture_;
  capture_->streams.insert(&stream);
  stream.tips_.insert(tips_.begin(), tips_.end());
  return {};
}

Status HostEvent::record_in_replays(DeviceStream at) {
  HostStream& stream = stream_of(at);
  const std::lock_guard lock(capturing);
  if (stream.capture_ == nullptr) return invalid_usage("the stream is not being captured");
  TUTTI_CHECK_OK(stream.capture_->state());
  stream.capture_->work.recorded.push_back(mark_);
  return {};
}

Status HostEvent::hold_in_replays(DeviceStream at) {
  HostStream& stream = stream_of(at);
  const std::lock_guard lock(capturing);
  if (stream.capture_ == nullptr) return invalid_usage("the stream is not being captured");
  TUTTI_CHECK_OK(stream.capture_->state());
  stream.capture_->work.held.push_back(mark_);
  return {};
}

Result<bool> HostEvent::reached() {
  const std::lock_guard lock(capturing);
  if (capture_ != nullptr) return invalid_usage("the event was last recorded in a capture");
  return mark_->reached();
}

HostTimer::HostTimer(HostStream& null, std::shared_ptr<std::atomic<std::uint64_t>> alive)
    : null_(null), alive_(std::move(alive)) {
  ++*alive_;
}

Status HostTimer::mark(DeviceStream at, std::atomic<std::int64_t> Marks::*which) {
  HostStream& stream = at == nullptr ? null_ : *static_cast<HostStream*>(at);
  const std::uint64_t capture = TUTTI_TRY(stream.capture());
  if (capture != 0) return invalid_usage("what a captured stream does has no time yet");
  return stream.put([marks = marks_, which] {
    (*marks).*which = now_ns();
    return Status();
  });
}

Status HostTimer::begin(DeviceStream stream) {
  marks_ = std::make_shared<Marks>();
  return mark(stream, &Marks::begin_ns);
}

Status HostTimer::end(DeviceStream stream) { return mark(stream, &Marks::end_ns); }

Result<std::optional<std::int64_t>> HostTimer::took_ns() {
  if (marks_ == nullptr) return invalid_usage("nothing was timed");
  const std::int64_t end_ns = marks_->end_ns;
  if (end_ns == 0) return std::optional<std::int64_t>();
  return std::optional(end_ns - marks_->begin_ns);
}

}  // namespace tutti::test
