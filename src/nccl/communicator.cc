#include "src/nccl/communicator.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <thread>
#include <utility>

#include "src/nccl/environment.h"
#include "src/nccl/exchange.h"
#include "src/nccl/memory.h"
#include "src/nccl/threads.h"

namespace tutti::nccl {
namespace {

constexpr std::chrono::seconds kAbortTime(5);  // An abort may have to wait for other communicators of its group.
constexpr std::chrono::milliseconds kLookTime(1);
constexpr std::size_t kMaxViews = 64;
// Maximum wait for a rank that has just joined. It may have to load a large library.
constexpr std::int64_t kFallbackLimitMs = 120'000;
constexpr const char* kHasWindows =
    "the communicator has windows, whose addresses peers have mapped; call ncclCommWindowDeregister for them first";
constexpr const char* kSuspended = "the communicator is suspended: call ncclCommResume first";

bool is_busy(tutti_stream stream) { return stream != nullptr && tutti_stream_query(stream) == tutti_in_progress; }

Outcome no_calls(EndedBy cause) {
  const std::string why = cause == EndedBy::shrink
                              ? "ncclCommShrink with NCCL_SHRINK_ABORT aborted the calls of the communicator; use the "
                                "new communicator, and destroy this one or shrink it again"
                              : "ncclCommRevoke ended the calls of the communicator; shrink, split or destroy it";
  return invalid_usage(why);
}

// Sends the id of a new communicator from rank 0 to all others.
Outcome share_id(const Exchange& exchange, tutti_unique_id& id) {
  struct Made {
    int status;
    tutti_unique_id id;
  } made = {};
  if (exchange.rank() == 0) made.status = tutti_get_unique_id(&made.id);
  Outcome own = outcome_of(static_cast<tutti_status>(made.status));
  TUTTI_NCCL_CHECK(exchange.broadcast(made));
  id = made.id;
  if (made.status == tutti_ok || exchange.rank() == 0) return own;
  return {result_of(static_cast<tutti_status>(made.status)), "rank 0 could not create an id; its error has the reason"};
}

// Errors were reported before, or no caller is left to receive them.
void end(tutti_comm comm, tutti_stream stream) {
  tutti_stream_destroy(stream);
  tutti_comm_leave(comm);
}

}  // namespace

// While it exists, abort() also ends the creation of `handle`.
class Communicator::Creation {
 public:
  Creation(Communicator& communicator, tutti_comm* handle) : communicator_(communicator) {
    const std::lock_guard lock(communicator_.mutex_);
    aborted_ = communicator_.aborted_;
    communicator_.being_made_ = handle;
  }
  ~Creation() {
    const std::lock_guard lock(communicator_.mutex_);
    communicator_.being_made_ = nullptr;
  }
  Creation(const Creation&) = delete;
  Creation& operator=(const Creation&) = delete;

  // Fails if the communicator was aborted before.
  Outcome possible() const { return aborted_ ? Outcome{ncclRemoteError, "the communicator was aborted"} : Outcome(); }

 private:
  Communicator& communicator_;
  bool aborted_ = false;
};

Communicator::Communicator(RankConfig given_rank_config, Settings given_settings, int given_device)
    : rank_config(given_rank_config), settings(std::move(given_settings)), device(given_device) {}

// The stream can be busy only if an abort has given up waiting for it. A thread then ends the communicator.
Communicator::~Communicator() {
  const auto end_it = [comm = comm_, stream = stream_] { end(comm, stream); };
  const Outcome started = caught([&]() -> Outcome {
    if (is_busy(stream_)) {
      start_thread(end_it).detach();
    } else {
      end_it();
    }
    return {};
  });
  if (started.failed()) end_it();
}

Outcome Communicator::join(const ncclUniqueId& id) {
  {
    const Creation creation(*this, &comm_);
    TUTTI_NCCL_CHECK(creation.possible());
    const tutti_unique_id same_id = std::bit_cast<tutti_unique_id>(id);
    const tutti_comm_options options = options_for(settings);
    TUTTI_NCCL_CHECK(outcome_of(tutti_comm_create(&same_id, rank_config.rank, rank_config.ranks, &options, &comm_)));
  }
  return settle();
}

Outcome Communicator::adopt(tutti_comm new_comm) {
  __atomic_store_n(&comm_, new_comm, __ATOMIC_RELEASE);
  return settle();
}

// Creates the resources that calls need.
Outcome Communicator::settle() {
  TUTTI_NCCL_CHECK(make_compressed(comm_, settings.compression, compressed_));
  if (!variable("TUTTI_NCCL_FALLBACK").empty())
    TUTTI_NCCL_CHECK(Fallback::create(exchange(comm_, kFallbackLimitMs), device_of(*this), fallback_));
  const bool calls_take_time = settings.mode == Mode::non_blocking && !enqueues(settings);
  if (calls_take_time) TUTTI_NCCL_CHECK(outcome_of(tutti_stream_create(&stream_)));
  joined_ = true;
  return {};
}

Outcome Communicator::close() {
  if (!closed_.exchange(true)) return {};
  return invalid_argument("the communicator is finalized already: destroy it");
}

Outcome Communicator::ready_to_end_calls() const {
  if (closed_) return invalid_argument("the communicator is finalized: only queries and ncclCommDestroy may follow");
  if (!joined_) return invalid_argument("the ranks of the communicator have not joined yet, or never did");
  if (suspended_) return invalid_usage(kSuspended);
  return {};
}

bool Communicator::end_calls(EndedBy cause) {
  EndedBy before = EndedBy::nothing;
  const bool first = ended_by_.compare_exchange_strong(before, cause);
  with_comm(tutti_comm_abort);
  if (fallback_ != nullptr) fallback_->abort();
  return first;
}

Outcome Communicator::quiesce() {
  forget_failures();
  (void)tutti_comm_synchronize(comm());  // Returns the error that calls were ended.
  return {};
}

Outcome Communicator::shrink(const std::vector<int>& excluded, const Settings& requested, tutti_comm& new_comm) {
  forget_failures();
  const Creation creation(*this, &new_comm);
  TUTTI_NCCL_CHECK(creation.possible());
  if (has_ended_calls()) (void)tutti_comm_synchronize(comm());  // Returns the error that calls were ended.
  const tutti_comm_options options = options_for(requested);
  return outcome_of(tutti_comm_shrink(comm(), excluded.data(), static_cast<int>(excluded.size()), &options, &new_comm));
}

void Communicator::forget_failures() {
  const std::lock_guard lock(mutex_);
  worked_ = suspension_ = {};
}

Exchange Communicator::exchange(tutti_comm comm, std::int64_t limit_ms) const {
  return Exchange(comm, {rank_config.rank, rank_config.ranks}, limit_ms);
}

// Creates a communicator of the same ranks in other memory.
Outcome Communicator::make_same_ranks(const std::string& memory, tutti_comm& made) {
  tutti_unique_id id;
  TUTTI_NCCL_CHECK(share_id(exchange(comm(), timeout_ms_of_environment()), id));
  tutti_comm_options options = options_for(settings);
  options.memory = memory.c_str();
  return outcome_of(tutti_comm_create(&id, rank_config.rank, rank_config.ranks, &options, &made));
}

// The old communicator is finalized after the new one exists, so that a failure to create that leaves the old one.
Outcome Communicator::move_to(const std::string& memory) {
  OwnedComm made;
  const Creation creation(*this, &made.comm);
  TUTTI_NCCL_CHECK(creation.possible());
  TUTTI_NCCL_CHECK(make_same_ranks(memory, made.comm));
  tutti_comm compressed = nullptr;
  if (memory == settings.memory) TUTTI_NCCL_CHECK(make_compressed(made.comm, settings.compression, compressed));
  TUTTI_NCCL_CHECK(outcome_of(tutti_comm_finalize(comm())));
  {
    const std::lock_guard lock(replacing_);
    const tutti_comm ended = __atomic_exchange_n(&comm_, made.comm, __ATOMIC_ACQ_REL);
    __atomic_store_n(&made.comm, ended, __ATOMIC_RELEASE);  // abort() may read it.
  }
  compressed_ = compressed;
  views_.clear();
  return {};
}

Outcome Communicator::suspend() {
  Outcome outcome = caught([&]() -> Outcome {
    const Outcome own = windows.empty() ? Outcome() : invalid_usage(kHasWindows);
    TUTTI_NCCL_CHECK(exchange(comm(), timeout_ms_of_environment()).agree(own));
    return enqueues(settings) ? move_to(kHostMemory) : Outcome();
  });
  if (outcome.failed()) cancel_suspension();
  if (!outcome.failed() && enqueues(settings)) outcome = return_device_memory();
  return concluded(std::move(outcome));
}

// Peers have the memory of this rank mapped, or share it, until they have destroyed the communicator on the device.
Outcome Communicator::return_device_memory() {
  const auto wait = [&] { return exchange(comm(), timeout_ms_of_environment()).agree({}); };
  Outcome ended = rank_config.ranks == 1 ? Outcome() : caught(wait);
  if (ended.failed()) with_comm(tutti_comm_abort);         // Peers must not wait for this rank.
  if (!ended.failed()) (void)tutti_mem_trim_cuda(device);  // If it fails, the memory stays cached.
  return ended;
}

Outcome Communicator::resume() {
  Outcome outcome = caught([&] { return enqueues(settings) ? move_to(settings.memory) : Outcome(); });
  if (!outcome.failed()) cancel_suspension();
  return concluded(std::move(outcome));
}

// A non-blocking communicator reports a failure in state() only.
Outcome Communicator::concluded(Outcome suspension) {
  if (settings.mode == Mode::blocking) return suspension;
  const std::lock_guard lock(mutex_);
  suspension_ = std::move(suspension);
  return {};
}

Outcome Communicator::flush() { return outcome_of(tutti_comm_synchronize(comm())); }

Outcome Communicator::handle_with(tutti_comm base, const CallOptions& options, tutti_comm& handle) {
  handle = base;
  if (options == CallOptions()) return {};
  const auto known = std::find_if(views_.begin(), views_.end(),
                                  [&](const View& view) { return view.base == base && view.options == options; });
  if (known != views_.end()) {
    handle = known->handle;
    return {};
  }
  if (views_.size() == kMaxViews)
    return invalid_usage("the collectives of this communicator have had " + std::to_string(kMaxViews) +
                         " different configs, the maximum; use fewer");
  tutti_tuning_options tuning = TUTTI_TUNING_OPTIONS_DEFAULT;
  tuning.algorithm = options.algorithm.c_str();
  tuning.min_channels = options.min_channels;
  tuning.max_channels = options.max_channels;
  tutti_comm_options wanted = TUTTI_COMM_OPTIONS_DEFAULT;
  wanted.compression = options.compression.c_str();
  wanted.max_relative_error = options.max_relative_error;
  wanted.compression_rounding = options.rounding.c_str();
  wanted.tuning = &tuning;
  TUTTI_NCCL_CHECK(outcome_of(tutti_comm_with_options(base, &wanted, &handle)));
  views_.push_back({base, options, handle});
  return {};
}

void Communicator::begin(const Shared& self, std::function<Outcome()> job) {
  const std::lock_guard lock(mutex_);
  const Outcome begun = caught([&]() -> Outcome {
    jobs_.push_back(std::move(job));
    if (working_) return {};
    start_thread([self] { self->work(); }).detach();
    working_ = true;
    return {};
  });
  if (!begun.failed()) return;
  if (!working_) jobs_.clear();
  if (!worked_.failed()) worked_ = begun;
}

void Communicator::work() {
  std::unique_lock lock(mutex_);
  while (!jobs_.empty()) {
    std::function<Outcome()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    Outcome outcome = caught(job);
    job = nullptr;
    lock.lock();
    if (!worked_.failed()) worked_ = std::move(outcome);
  }
  working_ = false;
  rested_.notify_all();
}

Outcome Communicator::state_of_jobs() const {
  const std::lock_guard lock(mutex_);
  return working_ ? in_progress() : worked_;
}

Outcome Communicator::state() const {
  TUTTI_NCCL_CHECK(state_of_calls());
  const std::lock_guard lock(mutex_);
  return suspension_;
}

Outcome Communicator::state_of_calls() const {
  TUTTI_NCCL_CHECK(state_of_jobs());
  const bool blocking = settings.mode == Mode::blocking;
  if (!joined_) return blocking ? Outcome() : in_progress();  // The group is still open, or join() runs.
  if (has_ended_calls()) return {};
  if (stream_ != nullptr) TUTTI_NCCL_CHECK(outcome_of(tutti_stream_query(stream_)));
  TUTTI_NCCL_CHECK(with_comm(failure_of));
  const Outcome there = fallback_ == nullptr ? Outcome() : fallback_->state();
  return there.failed() || !blocking ? there : Outcome();
}

Outcome Communicator::ready() {
  if (closed_) return invalid_argument("the communicator is finalized: only queries and ncclCommDestroy may follow");
  if (has_ended_calls()) return no_calls(ended_by_);
  if (suspended_) return invalid_usage(kSuspended);
  if (settings.mode == Mode::blocking) {
    if (joined_) return {};
    return invalid_argument("the ranks of the communicator have not joined yet: call ncclGroupEnd first");
  }
  Outcome now = state_of_calls();
  if (now.code == ncclSuccess) {
    const std::lock_guard lock(mutex_);
    suspension_ = {};
  }
  return now.code == ncclInProgress ? still_in_progress() : now;
}

// Waits for the handle: tutti.h writes it before waiting for other ranks. It waits only for calls of this rank, which
// have been aborted by then.
tutti_comm Communicator::being_made() const {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (being_made_ == nullptr) return nullptr;
      const tutti_comm made = __atomic_load_n(being_made_, __ATOMIC_ACQUIRE);
      if (made != nullptr) return made;
    }
    std::this_thread::yield();
  }
}

void Communicator::abort_comm() const {
  with_comm([](tutti_comm comm) { return comm == nullptr ? tutti_ok : tutti_comm_abort(comm); });
}

void Communicator::abort() {
  {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
  }
  abort_comm();
  if (joined_ && fallback_ != nullptr) fallback_->abort();
  if (const tutti_comm made = being_made(); made != nullptr) tutti_comm_abort(made);
  abort_comm();  // comm_ may have been created or replaced in between.
  // The caller of a blocking communicator sees its call return.
  if (settings.mode == Mode::non_blocking) rest();
}

void Communicator::rest() {
  const auto until = std::chrono::steady_clock::now() + kAbortTime;
  {
    std::unique_lock lock(mutex_);
    if (!rested_.wait_until(lock, until, [this] { return !working_; })) return;
  }
  while (is_busy(stream_) && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(kLookTime);
}

bool Communicator::is_aborted() const {
  const std::lock_guard lock(mutex_);
  return aborted_;
}

Outcome no_communicator(const ncclComm* handle) {
  if (handle == nullptr) return invalid_argument("comm is NULL: pass a communicator");
  return invalid_argument("comm is not a communicator of this process: it was destroyed or aborted, or never created");
}

Outcome still_in_progress(const std::string& alternative) {
  return invalid_argument(
      "the communicator is still in progress: call ncclCommGetAsyncError until it no longer returns ncclInProgress" +
      alternative);
}

Outcome admit_new(Shared communicator, ncclComm_t& handle) {
  const Result<void*> made = insert(Handles::instance(), std::move(communicator));
  if (!made.ok()) return invalid_usage("this process has the maximum number of communicators; destroy some");
  handle = static_cast<ncclComm_t>(made.value());
  return {};
}

void put(ncclComm_t* out, ncclComm_t handle) { __atomic_store_n(out, handle, __ATOMIC_RELEASE); }

Outcome find_ready(const ncclComm* handle, Shared& communicator) {
  communicator = find(handle);
  return communicator == nullptr ? no_communicator(handle) : communicator->ready();
}

}  // namespace tutti::nccl
