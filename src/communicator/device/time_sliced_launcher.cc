#include "src/communicator/device/time_sliced_launcher.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "src/base/atomic.h"
#include "src/base/clock.h"
#include "src/base/duration.h"
#include "src/base/pages.h"
#include "src/communicator/control/board.h"

namespace tutti {
namespace {

constexpr std::int64_t kNapNs = 20'000;
constexpr std::int64_t kMaxPauseNs = 1'000'000;  // Maximum interval between launches, and between polls of requests.
constexpr std::int64_t kLateNs =
    2'000'000'000;  // After the deadline: thread blocks that waited have reported for which rank.
// After a failure. Thread blocks that began earlier have ended by then, and later ones do nothing.
constexpr std::int64_t kGraceNs = 500'000'000;

void nap(std::int64_t ns) {
  const timespec time = {0, static_cast<long>(ns)};
  ::nanosleep(&time, nullptr);
}

}  // namespace

Result<std::unique_ptr<TimeSlicedLauncher>> TimeSlicedLauncher::make(std::shared_ptr<Device> device,
                                                                     ControlPlane& control) {
  std::unique_ptr<TimeSlicedLauncher> made(new TimeSlicedLauncher(std::move(device), control));
  made->event_ = TUTTI_TRY(made->device_->make_event());
  const std::size_t pages = round_up(sizeof(Mailbox), mapped_page_bytes());
  Segment memory = TUTTI_TRY(Segment::create("tutti-time-slices", pages));
  memory.close_descriptor();
  new (memory.data()) Mailbox{};
  made->memory_ = std::make_unique<MappedSegment>(made->device_, std::move(memory));
  made->mailbox_on_device_ = reinterpret_cast<Mailbox*>(TUTTI_TRY(made->memory_->map(0, pages)));
  made->queue_ = TUTTI_TRY(made->device_->make_queue());
  return made;
}

TimeSlicedLauncher::~TimeSlicedLauncher() {
  close();
  stream_server_.reset();
  stop_launch_thread();
  if (queue_ != nullptr) device_->drop_queue(queue_);
}

Status TimeSlicedLauncher::start() {
  if (stream_server_ != nullptr) return {};
  if (launch_thread_ == nullptr)
    launch_thread_ = TUTTI_TRY(LibraryThread::start([this] { run_launch_thread(); }, 4 * kServiceStackBytes));
  stream_server_ = TUTTI_TRY(LibraryThread::start([this] { serve_streams(); }));
  return {};
}

Result<TimeSlicedLauncher::Request*> TimeSlicedLauncher::add_request(const DeviceLaunch& launch, RequestKind kind) {
  auto request = std::make_unique<Request>();
  request->launch = launch;
  request->kind = kind;
  for (std::uint32_t i = 0; i < launch.count; ++i) {
    BatchCall& call = request->launch.batch.calls[i];
    call.watch.progress = mailbox_on_device_->blocks + request->thread_blocks;
    request->thread_blocks += call.channels;
    const auto timeout_ns = static_cast<std::int64_t>(call.watch.timeout_ns);
    if (request->timeout_ns == 0 || (timeout_ns != 0 && timeout_ns < request->timeout_ns))
      request->timeout_ns = timeout_ns;
  }
  if (request->thread_blocks > kMaxThreadBlocks)
    return internal_error("calls with " + std::to_string(request->thread_blocks) +
                          " thread blocks are to share the device in time slices; the maximum is " +
                          std::to_string(kMaxThreadBlocks));
  const std::lock_guard lock(mutex_);
  do {
    ++latest_;
  } while (latest_ == 0 || requests_.contains(latest_));
  request->number = latest_;
  Request* added = request.get();
  requests_[latest_] = std::move(request);
  ++(kind == RequestKind::single ? pending_ : replayed_);
  changed_.notify_one();
  return added;
}

// A request that was given up is kept while the launch thread uses it.
void TimeSlicedLauncher::remove_request(const Request& request) {
  const std::lock_guard lock(mutex_);
  --(request.kind == RequestKind::single ? pending_ : replayed_);
  if (job_ != &request) requests_.erase(request.number);
}

Status TimeSlicedLauncher::request(const DeviceLaunch& launch, RequestKind kind, DeviceStream stream) {
  const Request* added = TUTTI_TRY(add_request(launch, kind));
  const std::uint32_t number = added->number;
  if (kind == RequestKind::replayed) TUTTI_CHECK_OK(device_->keep_for_graph(stream, lease(number)));
  Status requested = device_->put_word(&mailbox_on_device_->requested, number, stream);
  if (!requested.ok() && kind == RequestKind::single) remove_request(*added);
  return requested;
}

// Reserves memory for the number, since the end of a lease cannot report an error.
std::shared_ptr<void> TimeSlicedLauncher::lease(std::uint32_t number) {
  {
    const std::lock_guard lock(ended_->mutex);
    if (ended_->leases >= ended_->numbers.capacity()) ended_->numbers.reserve(2 * ended_->leases + 1);
    ++ended_->leases;
  }
  return {nullptr, [ended = ended_, number](void*) {
            const std::lock_guard lock(ended->mutex);
            ended->numbers.push_back(number);
          }};
}

// A graph ends after its last replay, which ends after the server has released the stream. No such request is in use,
// but after a failure the launch thread may still run the one that was given up.
void TimeSlicedLauncher::remove_ended_requests() {
  const std::lock_guard lock(ended_->mutex);
  for (const std::uint32_t number : ended_->numbers) {
    --replayed_;
    const auto found = requests_.find(number);
    if (job_ != found->second.get()) requests_.erase(found);
  }
  ended_->leases -= ended_->numbers.size();
  ended_->numbers.clear();
}

Status TimeSlicedLauncher::hold(DeviceStream stream) {
  return device_->hold_until(&mailbox_on_device_->requested, 0, stream);
}

void TimeSlicedLauncher::close() {
  const std::lock_guard lock(mutex_);
  closing_ = true;
  changed_.notify_one();
}

void TimeSlicedLauncher::stop_launch_thread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    job_given_.notify_one();
  }
  launch_thread_.reset();
}

bool TimeSlicedLauncher::is_idle() {
  const std::lock_guard lock(mutex_);
  return pending_ == 0 && job_ == nullptr;
}

// If await_launch_thread() gave up a request, the communicator has failed, so the launch thread gets no other.
void TimeSlicedLauncher::serve_streams() {
  while (const Request* request = next_request()) {
    if (!has_failed()) await_launch_thread(*request);
    const Board& board = control_.membership.board;
    if (board.failed()) board.stop_thread_blocks();  // Thread blocks of later launches end at once.
    if (request->kind == RequestKind::single) remove_request(*request);
    store_release(&mailbox().requested, 0U);
  }
}

// Sleeps until a request is added while none can be pending; otherwise polls with growing intervals.
TimeSlicedLauncher::Request* TimeSlicedLauncher::next_request() {
  for (std::int64_t pause_ns = kNapNs;; pause_ns = std::min(2 * pause_ns, kMaxPauseNs)) {
    const std::uint32_t requested = load_acquire(&mailbox().requested);
    {
      std::unique_lock lock(mutex_);
      remove_ended_requests();
      const auto found = requests_.find(requested);
      if (found != requests_.end()) return found->second.get();
      // A graph without hold() put it, and has ended. Another stream may have put its own request since.
      if (requested != 0) compare_exchange(&mailbox().requested, requested, 0U);
      if (closing_ && pending_ == 0) return nullptr;
      if (pending_ + replayed_ == 0) {
        changed_.wait(lock);
        pause_ns = kNapNs;
        continue;
      }
    }
    nap(pause_ns);
  }
}

bool TimeSlicedLauncher::has_failed() const { return failed_ || control_.membership.board.failed(); }

void TimeSlicedLauncher::await_launch_thread(const Request& request) {
  const std::int64_t began_ns = now_ns();
  std::int64_t failed_ns = 0;  // Time at which the failure was seen.
  std::unique_lock lock(mutex_);
  job_ = &request;
  job_given_.notify_one();
  while (!changed_.wait_for(lock, std::chrono::nanoseconds(kMaxPauseNs), [&] { return job_ == nullptr; })) {
    const std::int64_t now = now_ns();
    if (failed_ns == 0 && has_failed()) failed_ns = now;
    if (failed_ns != 0 && now - failed_ns > kGraceNs) return;
    if (failed_ns != 0 || request.timeout_ns == 0 || now - began_ns - kLateNs < request.timeout_ns) continue;
    lock.unlock();
    (void)control_.failures.fail(blocked_error(request));
    lock.lock();
  }
}

Status TimeSlicedLauncher::blocked_error(const Request& request) const {
  return timeout_error("rank " + std::to_string(control_.membership.rank) + " waited more than " +
                       describe_ms(request.timeout_ns / 1'000'000) + ", and its launches on " + device_->traits().name +
                       " are held up: something in the process waits for the whole device while a stream is held, as "
                       "cudaFree and cudaDeviceSynchronize do; free memory when calls are done, or start MPS");
}

void TimeSlicedLauncher::run_launch_thread() {
  for (;;) {
    const Request* job = nullptr;
    {
      std::unique_lock lock(mutex_);
      job_given_.wait(lock, [&] { return stopping_ || job_ != nullptr; });
      if (job_ == nullptr) return;
      job = job_;
    }
    run_request(*job);
    const std::lock_guard lock(mutex_);
    job_ = nullptr;
    changed_.notify_one();
  }
}

// Peers see only completed steps, so thread blocks have progressed only if a cursor or state has changed.
void TimeSlicedLauncher::run_request(const Request& request) {
  std::fill_n(mailbox().blocks, request.thread_blocks, ThreadBlockProgress{});
  const std::int64_t began_ns = now_ns();
  std::int64_t pause_ns = kNapNs;
  for (bool first = true; !has_failed(); first = false) {
    const std::uint64_t seen = progress_of_peers();
    mark_late_calls(request, began_ns);
    const std::vector<ThreadBlockProgress> before(mailbox().blocks, mailbox().blocks + request.thread_blocks);
    Status launched = launch(request);
    if (!launched.ok()) {
      (void)control_.failures.fail(std::move(launched));
      return;
    }
    const bool moved = !std::equal(before.begin(), before.end(), mailbox().blocks,
                                   [](const ThreadBlockProgress& a, const ThreadBlockProgress& b) {
                                     return a.state == b.state && a.cursor == b.cursor;
                                   });
    if (moved || first) notify_peers();
    if (count(request, ThreadBlockState::done) == request.thread_blocks) return;
    if (count(request, ThreadBlockState::failed) > 0) failed_ = true;
    pause_ns = moved ? kNapNs : std::min(2 * pause_ns, kMaxPauseNs);
    const std::int64_t until_ns = now_ns() + pause_ns;
    while (progress_of_peers() == seen && now_ns() < until_ns && !has_failed()) nap(kNapNs);
  }
}

Status TimeSlicedLauncher::launch(const Request& request) {
  TUTTI_CHECK_OK(device_->launch(request.launch, queue_));
  TUTTI_CHECK_OK(event_->record(queue_));
  for (;;) {
    const bool reached = TUTTI_TRY(event_->reached());
    if (reached) return {};
    nap(kNapNs);
  }
}

// Marks calls past their timeout: their thread blocks report the awaited rank if they still wait.
void TimeSlicedLauncher::mark_late_calls(const Request& request, std::int64_t began_ns) {
  const auto waited_ns = static_cast<std::uint64_t>(now_ns() - began_ns);
  ThreadBlockProgress* block = mailbox().blocks;
  for (std::uint32_t i = 0; i < request.launch.count; ++i) {
    const BatchCall& call = request.launch.batch.calls[i];
    const bool late = call.watch.timeout_ns != 0 && waited_ns > call.watch.timeout_ns;
    for (std::uint32_t channel = 0; channel < call.channels; ++channel) (block++)->last = late ? 1 : 0;
  }
}

std::uint32_t TimeSlicedLauncher::count(const Request& request, ThreadBlockState state) const {
  return static_cast<std::uint32_t>(
      std::count_if(mailbox().blocks, mailbox().blocks + request.thread_blocks,
                    [&](const ThreadBlockProgress& block) { return block.state == state; }));
}

std::uint64_t TimeSlicedLauncher::progress_of_peers() const {
  std::uint64_t progress = 0;
  for (Rank peer = 0; peer < control_.membership.ranks; ++peer) {
    if (peer != control_.membership.rank)
      progress += load_acquire(&control_.membership.board.entry(peer).launches_with_progress);
  }
  return progress;
}

void TimeSlicedLauncher::notify_peers() const {
  std::uint64_t& moves = control_.membership.board.entry(control_.membership.rank).launches_with_progress;
  store_release(&moves, moves + 1);
}

}  // namespace tutti
