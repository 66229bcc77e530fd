#include "src/communicator/call/stream.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "src/base/caught.h"
#include "src/communicator/call/pace.h"

namespace tutti {

namespace {

constexpr std::int64_t kMaxWaitMs = 1'000'000'000'000;  // Keeps deadlines in the range of the clock.
constexpr std::size_t kStackBytes = 2 << 20;            // Plans are built and verified on this stack.

}  // namespace

Result<std::unique_ptr<Stream>> Stream::create() {
  std::unique_ptr<Stream> stream(new Stream);
  stream->worker_ = TUTTI_TRY(LibraryThread::start([self = stream.get()] { self->serve(); }, kStackBytes));
  return stream;
}

Stream::~Stream() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  arrived_.notify_one();
}

void Stream::enqueue(std::function<Status()> work) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
    ++enqueued_;
  }
  arrived_.notify_one();
}

void Stream::enqueue_callback(std::function<void(const Status&)> function) {
  enqueue([this, function = std::move(function)] {
    function(std::exchange(unreported_, Status()));
    return Status();
  });
}

Status Stream::synchronize() {
  std::unique_lock lock(mutex_);
  const std::uint64_t until = enqueued_;
  finished_.wait(lock, [&] { return done_ >= until; });
  return std::exchange(failure_, Status());
}

bool Stream::idle() const {
  const std::lock_guard lock(mutex_);
  return done_ == enqueued_;
}

Status Stream::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_.copy();
}

void Stream::serve() {
  thread_pace.in_stream = true;
  std::unique_lock lock(mutex_);
  for (;;) {
    arrived_.wait(lock, [this] { return ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Status status;
    {  // Objects that the work owns, maybe a communicator, end without the lock, and before the work counts as done.
      const std::function<Status()> work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      status = caught(work);
    }
    if (!status.ok() && unreported_.ok()) unreported_ = caught([&] { return status.copy(); });
    lock.lock();
    if (failure_.ok()) failure_ = std::move(status);
    ++done_;
    finished_.notify_all();
  }
}

void Event::Mark::set() {
  const std::lock_guard lock(mutex);
  reached = true;
  changed.notify_all();
}

void Event::Mark::wait() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [this] { return reached; });
}

bool Event::Mark::wait_for(std::int64_t timeout_ms) {
  std::unique_lock lock(mutex);
  return changed.wait_for(lock, std::chrono::milliseconds(timeout_ms), [this] { return reached; });
}

std::shared_ptr<Event::Mark> Event::mark() const {
  const std::lock_guard lock(mutex_);
  return mark_;
}

void Event::record(Stream& stream) {
  auto mark = std::make_shared<Mark>();
  // Publishes the mark only after it has been enqueued. Otherwise, if enqueuing failed, a waiter would wait forever.
  const std::lock_guard lock(mutex_);
  stream.enqueue([mark] {
    mark->set();
    return Status();
  });
  mark_ = std::move(mark);
}

void Event::hold(Stream& stream) const {
  if (auto held = mark()) {
    stream.enqueue([held] {
      held->wait();
      return Status();
    });
  }
}

void Event::synchronize() const {
  if (auto held = mark()) held->wait();
}

bool Event::synchronize_for(std::int64_t timeout_ms) const {
  const auto held = mark();
  if (held == nullptr) return true;
  if (timeout_ms >= 0) return held->wait_for(std::min(timeout_ms, kMaxWaitMs));
  held->wait();
  return true;
}

}  // namespace tutti
