#include "src/communicator/device/turns.h"

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
#include "src/communicator/device/deferred_device_frees.h"

namespace tutti {
namespace {

constexpr std::int64_t kNapNs = 20'000;
constexpr std::int64_t kLongestNs = 1'000'000;  // Maximum interval between launches, and between polls of requests.
constexpr std::int64_t kLateNs =
    2'000'000'000;  // After the deadline: thread blocks that waited have reported for which rank.
// After a failure. Thread blocks that began earlier have ended by then, and later ones do nothing.
constexpr std::int64_t kGraceNs = 500'000'000;

void nap(std::int64_t ns) {
  const timespec time = {0, static_cast<long>(ns)};
  ::nanosleep(&time, nullptr);
}

}  // namespace

Result<std::unique_ptr<Turns>> Turns::make(std::shared_ptr<Device> device, Communicator& control) {
  std::unique_ptr<Turns> made(new Turns(std::move(device), control));
  made->event_ = TUTTI_TRY(made->device_->make_event());
  const std::size_t pages = round_up(sizeof(Desk), mapped_page_bytes());
  made->memory_ = TUTTI_TRY(Segment::create("tutti-turns", pages));
  made->memory_.close_descriptor();
  new (made->memory_.data()) Desk{};
  made->mapped_ = TUTTI_TRY(made->device_->map_host(made->memory_.data(), pages));
  made->queue_ = TUTTI_TRY(made->device_->make_queue());
  return made;
}

Turns::~Turns() {
  close();
  keeper_.reset();
  end_launcher();
  if (queue_ != nullptr) device_->drop_queue(queue_);
  if (mapped_.host == nullptr) return;
  auto desk = std::make_shared<Segment>(std::move(memory_));  // Shared, because std::function must be copyable.
  free_deferred([device = device_, desk = std::move(desk), mapped = mapped_] { device->unmap_host(mapped); });
}

Status Turns::start() {
  if (keeper_ != nullptr) return {};
  if (launcher_ == nullptr)
    launcher_ = TUTTI_TRY(ServiceThread::start([this] { launch_jobs(); }, 4 * kServiceStackBytes));
  keeper_ = TUTTI_TRY(ServiceThread::start([this] { keep(); }));
  return {};
}

Result<Turns::Request*> Turns::note(const DeviceLaunch& launch, Comes comes) {
  auto request = std::make_unique<Request>();
  request->launch = launch;
  request->comes = comes;
  for (std::uint32_t i = 0; i < launch.count; ++i) {
    BatchCall& call = request->launch.batch.calls[i];
    call.watch.time_slices = desk_on_device().turns + request->turns;
    request->turns += call.channels;
    const auto timeout_ns = static_cast<std::int64_t>(call.watch.timeout_ns);
    if (request->timeout_ns == 0 || (timeout_ns != 0 && timeout_ns < request->timeout_ns))
      request->timeout_ns = timeout_ns;
  }
  if (request->turns > kMaxTurns)
    return internal_error("calls with " + std::to_string(request->turns) + " thread blocks are to take turns together");
  const std::lock_guard lock(mutex_);
  do {
    ++latest_;
  } while (latest_ == 0 || requests_.contains(latest_));
  request->number = latest_;
  Request* noted = request.get();
  requests_[latest_] = std::move(request);
  ++(comes == Comes::once ? awaited_ : graphs_);
  if (comes == Comes::once) note_held_stream();
  changed_.notify_one();
  return noted;
}

// A request that was given up is kept while the launcher uses it.
void Turns::forget(const Request& request) {
  const std::lock_guard lock(mutex_);
  --(request.comes == Comes::once ? awaited_ : graphs_);
  if (request.comes == Comes::once) note_let_go();
  if (job_ != &request) requests_.erase(request.number);
}

Status Turns::ask(const DeviceLaunch& launch, Comes comes, DeviceStream stream) {
  const Request* request = TUTTI_TRY(note(launch, comes));
  Status requested = device_->put_word(&desk_on_device().requested, request->number, stream);
  if (!requested.ok()) forget(*request);
  return requested;
}

Status Turns::hold(DeviceStream stream) { return device_->hold_until(&desk_on_device().requested, 0, stream); }

void Turns::close() {
  const std::lock_guard lock(mutex_);
  closing_ = true;
  changed_.notify_one();
}

void Turns::end_launcher() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    handed_.notify_one();
  }
  launcher_.reset();
}

bool Turns::quiet() {
  const std::lock_guard lock(mutex_);
  return awaited_ == 0 && job_ == nullptr;
}

// If await() gave up a request, the communicator has failed, so the launcher gets no other.
void Turns::keep() {
  while (const Request* request = next()) {
    if (!over()) await(*request);
    if (request->comes == Comes::once) forget(*request);
    store_release(&desk().requested, 0U);
  }
}

// Sleeps until a request is noted while none can be pending; otherwise polls with growing intervals.
Turns::Request* Turns::next() {
  for (std::int64_t pause_ns = kNapNs;; pause_ns = std::min(2 * pause_ns, kLongestNs)) {
    const std::uint32_t requested = load_acquire(&desk().requested);
    {
      std::unique_lock lock(mutex_);
      if (requested != 0) return requests_.at(requested).get();
      if (closing_ && awaited_ == 0) return nullptr;
      if (awaited_ + graphs_ == 0) {
        changed_.wait(lock);
        pause_ns = kNapNs;
        continue;
      }
    }
    nap(pause_ns);
  }
}

bool Turns::over() const { return failed_ || control_.board().failed(); }

void Turns::await(const Request& request) {
  const std::int64_t began_ns = now_ns();
  std::int64_t over_ns = 0;  // Time at which the failure was seen.
  std::unique_lock lock(mutex_);
  job_ = &request;
  handed_.notify_one();
  while (!changed_.wait_for(lock, std::chrono::nanoseconds(kLongestNs), [&] { return job_ == nullptr; })) {
    const std::int64_t now = now_ns();
    if (over_ns == 0 && over()) over_ns = now;
    if (over_ns != 0 && now - over_ns > kGraceNs) return;
    if (over_ns != 0 || request.timeout_ns == 0 || now - began_ns - kLateNs < request.timeout_ns) continue;
    lock.unlock();
    (void)control_.fail(held_up(request));
    lock.lock();
  }
}

Status Turns::held_up(const Request& request) const {
  return timeout_error("rank " + std::to_string(control_.rank()) + " waited more than " +
                       describe_ms(request.timeout_ns / 1'000'000) + ", and its launches on " + device_->traits().name +
                       " are held up: something in the process waits for the whole device while a stream is held, as "
                       "cudaFree and cudaDeviceSynchronize do; free memory when calls are done, or start MPS");
}

void Turns::launch_jobs() {
  for (;;) {
    const Request* job = nullptr;
    {
      std::unique_lock lock(mutex_);
      handed_.wait(lock, [&] { return ended_ || job_ != nullptr; });
      if (job_ == nullptr) return;
      job = job_;
    }
    run(*job);
    const std::lock_guard lock(mutex_);
    job_ = nullptr;
    changed_.notify_one();
  }
}

// Peers see only completed steps, so thread blocks have progressed only if a cursor or state has changed.
void Turns::run(const Request& request) {
  std::fill_n(desk().turns, request.turns, TimeSlice{});
  const std::int64_t began_ns = now_ns();
  std::int64_t pause_ns = kNapNs;
  for (bool first = true; !over(); first = false) {
    const std::uint64_t seen = moves_of_peers();
    end_late_calls(request, began_ns);
    const std::vector<TimeSlice> before(desk().turns, desk().turns + request.turns);
    Status launched = launch(request);
    if (!launched.ok()) {
      (void)control_.fail(std::move(launched));
      return;
    }
    const bool moved =
        !std::equal(before.begin(), before.end(), desk().turns,
                    [](const TimeSlice& a, const TimeSlice& b) { return a.state == b.state && a.cursor == b.cursor; });
    if (moved || first) notify_peers();
    if (count(request, TimeSliceState::done) == request.turns) return;
    if (count(request, TimeSliceState::failed) > 0) failed_ = true;
    pause_ns = moved ? kNapNs : std::min(2 * pause_ns, kLongestNs);
    const std::int64_t until_ns = now_ns() + pause_ns;
    while (moves_of_peers() == seen && now_ns() < until_ns && !over()) nap(kNapNs);
  }
}

Status Turns::launch(const Request& request) {
  TUTTI_CHECK_OK(
      device_->launch(request.launch.batch, request.launch.count, request.launch.thread_block_bytes, queue_));
  TUTTI_CHECK_OK(event_->record(queue_));
  for (;;) {
    const bool reached = TUTTI_TRY(event_->reached());
    if (reached) return {};
    nap(kNapNs);
  }
}

// Marks calls past their timeout: their thread blocks report the awaited rank if they still wait.
void Turns::end_late_calls(const Request& request, std::int64_t began_ns) {
  const auto waited_ns = static_cast<std::uint64_t>(now_ns() - began_ns);
  TimeSlice* turn = desk().turns;
  for (std::uint32_t i = 0; i < request.launch.count; ++i) {
    const BatchCall& call = request.launch.batch.calls[i];
    const bool late = call.watch.timeout_ns != 0 && waited_ns > call.watch.timeout_ns;
    for (std::uint32_t channel = 0; channel < call.channels; ++channel) (turn++)->last = late ? 1 : 0;
  }
}

std::uint32_t Turns::count(const Request& request, TimeSliceState state) const {
  return static_cast<std::uint32_t>(std::count_if(desk().turns, desk().turns + request.turns,
                                                  [&](const TimeSlice& turn) { return turn.state == state; }));
}

std::uint64_t Turns::moves_of_peers() const {
  std::uint64_t moves = 0;
  for (Rank peer = 0; peer < control_.ranks(); ++peer) {
    if (peer != control_.rank()) moves += load_acquire(&control_.board().entry(peer).moves);
  }
  return moves;
}

void Turns::notify_peers() const {
  std::uint64_t& moves = control_.board().entry(control_.rank()).moves;
  store_release(&moves, moves + 1);
}

}  // namespace tutti
