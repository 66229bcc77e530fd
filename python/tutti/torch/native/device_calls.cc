#include "python/tutti/torch/native/device_calls.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/StreamGuard.h>
#include <pthread.h>
#include <unistd.h>

#include "python/tutti/torch/native/cuda_in_python.h"

namespace tutti_torch {
namespace {

constexpr Milliseconds kWatchInterval{200};

c10::Stream current_stream(c10::Device device) { return c10::impl::VirtualGuardImpl(device.type()).getStream(device); }

// Makes `stream` wait for the work in `current`, and keeps the memory of the tensors until the work in `stream` is
// done.
void continue_in(const c10::Stream& stream, const c10::Stream& current, const CallDescription& description) {
  c10::Event ready(current.device_type());
  ready.record(current);
  ready.block(stream);
  for (const at::Tensor& tensor : description.inputs) tensor.record_stream(stream);
  for (const Tensors& list : description.outputs) {
    for (const at::Tensor& tensor : list) tensor.record_stream(stream);
  }
}

// Returns whether the call before the event may still run. The event of a captured call cannot be queried.
bool is_open(const c10::Event& end) {
  try {
    return !end.query();
  } catch (const c10::Error&) {
    return true;
  }
}

}  // namespace

DeviceCalls::DeviceCalls(std::shared_ptr<Hooks> hooks) : hooks_(std::move(hooks)), process_(getpid()) {}

DeviceCalls::~DeviceCalls() {
  if (!watcher_.joinable()) return;
  // This is a child of fork(). The end of a condition variable would wait for the watcher, which does not exist here.
  watcher_.detach();
  static_cast<void>(changed_.release());
}

std::shared_ptr<Communicator> DeviceCalls::communicator() const {
  const Lock lock(mutex_);
  return communicator_;
}

bool DeviceCalls::is_on(c10::Device device, int rank) const {
  const Lock lock(mutex_);
  if (is_ended_) throw shut_down_error(rank);
  if (communicator_ == nullptr) return false;
  TUTTI_CHECK_ARGUMENT(stream_->device() == device, "a tensor is on ", device.str(), ", but the process group uses ",
                       stream_->device().str(),
                       " since its first call on CUDA tensors; use one device per process and group");
  return true;
}

void DeviceCalls::use(std::shared_ptr<Communicator> communicator, c10::Device device) {
  const Lock lock(mutex_);
  stream_ = c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
  is_watched_ = true;
  watcher_ = std::thread([this, communicator] { watch(*communicator); });
  communicator_ = std::move(communicator);
}

DeviceWorkPtr DeviceCalls::start(const CallDescription& description, Mode mode, const CallWork::Body& body) {
  const c10::Stream current = current_stream(stream_->device());
  const c10::Stream stream = mode == Mode::kCurrentStream ? current : *stream_;
  const auto handle = static_cast<tutti_stream>(cuda_stream_of(stream));
  // Another thread must not wait for an event of a captured stream.
  const bool reports = hooks_->watch_completion() && !current_stream_is_captured();
  const Lock calling(calling_);
  const std::shared_ptr<Communicator> communicator = this->communicator();
  auto work = c10::make_intrusive<DeviceWork>(description, communicator);
  const at::AutoDispatchBelowADInplaceOrView no_autograd;  // Staging copies are no operations of the user's program.
  if (stream != current) continue_in(stream, current, description);
  try {
    const c10::StreamGuard guard(stream);
    body({communicator->handle(description.timeout), handle});
  } catch (const LibraryError& caught) {
    LibraryError error = in_operation(caught, description.title, description.is_message ? 0 : description.sequence);
    error.rank = description.rank;
    if (error.fails_group()) communicator->note_raised();
    if (error.fails_group() && communicator->is_open()) hooks_->start_abort();
    throw error;
  }
  work->record(stream);
  const Lock lock(mutex_);
  last_ = work->end();
  if (reports) report_completion(work);
  return work;
}

void DeviceCalls::report_completion(const DeviceWorkPtr& work) {
  hooks_->post([work, hooks = hooks_] {
    work->end()->synchronize();
    if (work->isCompleted() && work->isSuccess()) hooks->call_completion(work->key(), 0);
  });
}

std::shared_ptr<c10::Event> DeviceCalls::record_current_stream() const {
  if (communicator() == nullptr) return nullptr;
  auto event = std::make_shared<c10::Event>(stream_->device_type());
  event->record(current_stream(stream_->device()));
  return event;
}

void DeviceCalls::synchronize() {
  const Lock calling(calling_);
  const std::shared_ptr<Communicator> communicator = this->communicator();
  if (communicator != nullptr) check(tutti_comm_synchronize(communicator->default_handle()));
}

void DeviceCalls::abort() {
  if (const std::shared_ptr<Communicator> communicator = this->communicator()) communicator->abort();
}

void DeviceCalls::end(OpenCalls calls) {
  if (process_ != getpid()) return;
  std::unique_lock<std::mutex> lock(mutex_);
  is_ended_ = true;
  const std::shared_ptr<Communicator> communicator = communicator_;
  const std::shared_ptr<c10::Event> last = last_;
  lock.unlock();
  if (communicator == nullptr) return;
  if (calls == OpenCalls::kAbort && last != nullptr && is_open(*last)) communicator->abort();
  const Lock calling(calling_);
  // This wait ends early if the watcher finds a failure.
  if (communicator->is_open()) tutti_comm_synchronize(communicator->default_handle());
  lock.lock();
  is_watched_ = false;
  std::thread watcher = std::move(watcher_);
  lock.unlock();
  changed_->notify_all();
  if (watcher.joinable()) watcher.join();
  communicator->leave();
}

// Looks for failures of peers, which end this rank's calls. Threads that wait for a stream do not.
void DeviceCalls::watch(Communicator& communicator) {
  pthread_setname_np(pthread_self(), "tutti_watch");
  std::unique_lock<std::mutex> lock(mutex_);
  while (!changed_->wait_for(lock, kWatchInterval, [this] { return !is_watched_; })) {
    lock.unlock();
    if (communicator.failure() != nullptr) return hooks_->start_abort();
    lock.lock();
  }
}

}  // namespace tutti_torch
