#include "src/messages/service.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "src/base/caught.h"
#include "src/base/clock.h"
#include "src/messages/endpoint.h"

namespace tutti {
namespace {

constexpr int kRetryMs = 10;
constexpr std::size_t kStackBytes = 8U << 20;  // The thread calls functions of the program.

struct RunningService {
  std::mutex mutex;
  std::weak_ptr<MessageService> service;
};

// Never destroyed: communicators that the process never destroyed may end later.
RunningService& running = *new RunningService;

// A child has no service thread. Its handles are invalid, so it never uses the service of its parent, which is leaked.
[[maybe_unused]] const int fork_handlers =
    ::pthread_atfork([] { running.mutex.lock(); }, [] { running.mutex.unlock(); },
                     [] {
                       new (&running.service) std::weak_ptr<MessageService>;
                       running.mutex.unlock();
                     });

}  // namespace

// start() locks the registry of sockets, whose fork handler may run before the one above. It therefore runs without the
// lock. If two threads start a service, the second one ends again.
Result<std::shared_ptr<MessageService>> MessageService::of_process() {
  const auto known = [] {
    const std::lock_guard lock(running.mutex);
    return running.service.lock();
  };
  if (auto service = known()) return service;
  std::shared_ptr<MessageService> made(new MessageService);
  TUTTI_CHECK_OK(made->start());
  const std::lock_guard lock(running.mutex);
  if (auto service = running.service.lock()) return service;
  running.service = made;
  return made;
}

Status MessageService::start() {
  event_ = adopt_socket(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event_) return system_error("create an event for tagged messages");
  thread_ = TUTTI_TRY(LibraryThread::start([this] { run(); }, kStackBytes));
  return {};
}

MessageService::~MessageService() {
  stopped_ = true;
  wake();
}

void MessageService::wake() {
  const std::uint64_t one = 1;
  (void)!::write(event_.get(), &one, sizeof one);
}

void MessageService::add(std::shared_ptr<MessageEndpoint> endpoint) {
  {
    const std::lock_guard lock(mutex_);
    endpoints_.push_back(std::move(endpoint));
  }
  wake();
}

void MessageService::remove(const MessageEndpoint& endpoint) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(endpoints_, [&](const auto& other) { return other.get() == &endpoint; });
  }
  wake();
  const std::lock_guard lock(serving_);
}

std::vector<std::shared_ptr<MessageEndpoint>> MessageService::endpoints() {
  const std::lock_guard lock(mutex_);
  return endpoints_;
}

// Lack of memory delays the next round.
void MessageService::run() {
  while (!stopped_) {
    const Status status = caught([this] { return progress(); });
    if (!status.ok()) ::poll(nullptr, 0, kRetryMs);
  }
}

Status MessageService::progress() {
  const auto watched = endpoints();
  std::vector<pollfd> polled = {{event_.get(), POLLIN, 0}};
  Deadline next;
  for (const auto& endpoint : watched) {
    endpoint->watch(polled);
    next.at_ns = std::min(next.at_ns, endpoint->deadline().at_ns);
  }
  const int timeout_ms = next.at_ns == Deadline{}.at_ns ? -1 : static_cast<int>(next.left_ms());
  if (::poll(polled.data(), polled.size(), timeout_ms) < 0 && errno != EINTR) return system_error("poll for messages");
  if (polled[0].revents != 0) {
    std::uint64_t count = 0;
    (void)!::read(event_.get(), &count, sizeof count);
  }
  const std::lock_guard lock(serving_);
  const auto current = endpoints();
  for (const auto& endpoint : watched) {
    if (std::find(current.begin(), current.end(), endpoint) != current.end()) endpoint->serve(polled);
  }
  return {};
}

}  // namespace tutti
