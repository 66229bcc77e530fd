#include "src/communicator/stream.h"

#include <utility>

#include "src/base/caught.h"

namespace tutti {

namespace {

constexpr std::size_t kStackBytes = 2 << 20;  // Plans are built and verified on this stack.

}  // namespace

Result<std::unique_ptr<Stream>> Stream::create() {
  std::unique_ptr<Stream> stream(new Stream);
  stream->worker_ = TUTTI_TRY(ServiceThread::start([self = stream.get()] { self->serve(); }, kStackBytes));
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
  return {failure_.code(), failure_.message()};
}

void Stream::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    arrived_.wait(lock, [this] { return ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const std::function<Status()> work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    Status status = caught(work);
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

bool Event::reached() const {
  const auto held = mark();
  if (held == nullptr) return true;
  const std::lock_guard lock(held->mutex);
  return held->reached;
}

}  // namespace tutti
