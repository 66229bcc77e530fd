#include "src/nccl/communicator.h"

#include <bit>
#include <utility>

#include "src/nccl/leaving.h"
#include "src/nccl/memory.h"
#include "src/nccl/threads.h"

namespace tutti::nccl {

Communicator::Communicator(Seat given_seat, Settings given_settings, int given_device)
    : seat(given_seat), settings(std::move(given_settings)), device(given_device) {}

Communicator::~Communicator() { leave({comm_, stream_, std::move(job_)}); }

Outcome Communicator::join(const ncclUniqueId& id) {
  {
    const std::lock_guard lock(mutex_);
    if (aborted_) return {ncclRemoteError, "the communicator was aborted before its ranks joined"};
    joining_ = true;
  }
  const tutti_unique_id same_id = std::bit_cast<tutti_unique_id>(id);
  const tutti_comm_options options = options_for(settings);
  Outcome outcome = outcome_of(tutti_comm_create(&same_id, seat.rank, seat.ranks, &options, &comm_));
  {
    const std::lock_guard lock(mutex_);
    joining_ = false;
  }
  if (outcome.failed()) return outcome;
  return make_stream();
}

Outcome Communicator::adopt(tutti_comm part) {
  __atomic_store_n(&comm_, part, __ATOMIC_RELEASE);
  return make_stream();
}

Outcome Communicator::make_stream() {
  if (settings.mode == Mode::non_blocking) TUTTI_NCCL_CHECK(outcome_of(tutti_stream_create(&stream_)));
  joined_ = true;
  return {};
}

Outcome Communicator::close() {
  if (!closed_.exchange(true)) return {};
  return invalid_argument("the communicator is finalized already: destroy it");
}

void Communicator::begin(const Shared& self, std::function<Outcome()> work) {
  const std::lock_guard lock(mutex_);
  if (job_.joinable()) job_.join();  // It has ended: nothing begins while something is in progress.
  working_ = true;
  worked_ = {};
  try {
    job_ = start_thread([self, work = std::move(work)] {
      Outcome outcome = caught(work);
      const std::lock_guard job_lock(self->mutex_);
      self->worked_ = std::move(outcome);
      self->working_ = false;
    });
  } catch (const std::system_error& error) {
    working_ = false;
    worked_ = {ncclSystemError, std::string("start a thread: ") + error.what()};
  }
}

Outcome Communicator::state_of_job() const {
  const std::lock_guard lock(mutex_);
  return working_ ? in_progress() : worked_;
}

Outcome Communicator::state() const {
  TUTTI_NCCL_CHECK(state_of_job());
  const bool blocking = settings.mode == Mode::blocking;
  if (!joined_) return blocking ? Outcome() : in_progress();  // Its group is still open, or its thread is in join().
  if (stream_ != nullptr && tutti_stream_query(stream_) == tutti_in_progress) return in_progress();
  tutti_status failure = tutti_ok;
  TUTTI_NCCL_CHECK(outcome_of(tutti_comm_async_error(comm(), &failure)));
  if (failure == tutti_ok) return {};
  return {result_of(failure), tutti_last_error(comm())};
}

Outcome Communicator::ready() const {
  if (closed_) return invalid_argument("the communicator is finalized: only queries and ncclCommDestroy may follow");
  if (settings.mode == Mode::blocking) {
    if (joined_) return {};
    return invalid_argument("the ranks of the communicator have not joined yet: call ncclGroupEnd first");
  }
  Outcome now = state();
  if (now.code != ncclInProgress) return now;
  return invalid_argument(
      "the communicator is still in progress: call ncclCommGetAsyncError until it no longer says ncclInProgress");
}

void Communicator::abort() {
  {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
  }
  const auto is_joining = [&] {
    const std::lock_guard lock(mutex_);
    return joining_;
  };
  // tutti_comm_create writes the handle before it waits for anybody.
  while (comm() == nullptr && is_joining()) std::this_thread::yield();
  if (comm() != nullptr) tutti_comm_abort(comm());
}

Outcome no_communicator(const ncclComm* handle) {
  if (handle == nullptr) return invalid_argument("comm is NULL: pass a communicator");
  return invalid_argument("comm is no communicator of this process: it was destroyed or aborted, or never was one");
}

Outcome find_ready(const ncclComm* handle, Shared& communicator) {
  communicator = find(handle);
  return communicator == nullptr ? no_communicator(handle) : communicator->ready();
}

}  // namespace tutti::nccl
