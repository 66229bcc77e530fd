#include "python/tutti/torch/native/process_group.h"

#include <algorithm>
#include <optional>
#include <set>

#include "python/tutti/torch/native/elements.h"
#include "python/tutti/torch/native/gil.h"

namespace tutti_torch {
namespace {

constexpr size_t kMinCoalescedLimit = 64;

// Options for a group that is made from one with `parent`: those of `given` that PyTorch defines, if it is not null.
OptionsPtr inherit(const Options& parent, const c10::intrusive_ptr<c10d::Backend::Options>& given) {
  const auto* ours = dynamic_cast<const Options*>(given.get());
  auto result = c10::make_intrusive<Options>(ours == nullptr ? parent : *ours);
  result->joins_later = false;
  if (!given) return result;
  result->timeout = given->timeout;
  result->group_name = given->group_name;
  if (!given->group_name.empty()) result->communicator_name = "group " + given->group_name;
  result->global_ranks_in_group = given->global_ranks_in_group;
  return result;
}

// The end of a coalesced section: complete when all its calls are.
class CoalescedWork : public c10d::Work {
 public:
  explicit CoalescedWork(std::vector<WorkPtr> calls) : Work(-1, c10d::OpType::COALESCED), calls_(std::move(calls)) {}
  bool isCompleted() override {
    return std::all_of(calls_.begin(), calls_.end(), [](const WorkPtr& call) { return call->isCompleted(); });
  }
  bool isSuccess() const override {
    return std::all_of(calls_.begin(), calls_.end(), [](const WorkPtr& call) { return call->isSuccess(); });
  }
  // Returns the exception of the first call that has failed.
  std::exception_ptr exception() const override {
    for (const WorkPtr& call : calls_) {
      if (const std::exception_ptr error = call->exception()) return error;
    }
    return nullptr;
  }
  // Waits at most `timeout` for all calls together.
  bool wait(Milliseconds timeout) override {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    for (const WorkPtr& call : calls_) {
      const auto left = std::chrono::ceil<Milliseconds>(deadline - std::chrono::steady_clock::now());
      call->wait(timeout == kNoTimeout ? kNoTimeout : std::max(Milliseconds(1), left));
    }
    return true;
  }
  void synchronize() override { wait(kNoTimeout); }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    c10::List<c10::intrusive_ptr<c10::ivalue::Future>> futures(
        c10::FutureType::create(c10::ListType::create(c10::TensorType::get())));
    for (const WorkPtr& call : calls_) futures.push_back(call->getFuture());
    return c10::collectAll(futures);
  }

 private:
  std::vector<WorkPtr> calls_;
};

}  // namespace

ProcessGroupTutti::ProcessGroupTutti(const StorePtr& store, int rank, int size, OptionsPtr options)
    : ProcessGroupTutti(
          rank, size, options,
          options->joins_later ? without_members(rank) : join({store, rank, size, options->timeout}, *options)) {}

ProcessGroupTutti::ProcessGroupTutti(int rank, int size, OptionsPtr options, Joined joined)
    : Backend(rank, size), options_(std::move(options)), callbacks_(std::make_shared<CallbackThread>()) {
  init();
  use(std::move(joined));
}

void ProcessGroupTutti::use(Joined joined) {
  communicator_ = std::move(joined.communicator);
  store_ = std::move(joined.store);
  queue_ = std::make_shared<CallQueue>();
  device_calls_ = std::make_shared<DeviceCalls>(hooks_);
  ending_ = std::make_shared<GroupEnding>(GroupEnding{communicator_, queue_, device_calls_, callbacks_, hooks_});
  sequence_ = monitored_barriers_ = 0;
  add_open_group(ending_);
}

ProcessGroupTutti::~ProcessGroupTutti() { shutdown(); }

void ProcessGroupTutti::abort() {
  hooks_->call_abort();
  communicator_->abort();
  device_calls_->abort();
}

void ProcessGroupTutti::shutdown() { ending_->shutdown(); }

Milliseconds ProcessGroupTutti::timeout_or_default(Milliseconds timeout) const {
  return timeout == c10d::kUnsetTimeout ? options_->timeout : timeout;
}

void ProcessGroupTutti::check_root(const char* operation, int64_t root) const {
  TUTTI_CHECK_ARGUMENT(root >= 0 && root < size_, operation, ": root ", root, " is out of range; ranks are 0..",
                       size_ - 1);
}

CallDescription ProcessGroupTutti::describe(Call call) {
  for (const Tensors& list : call.outputs) {
    if (!call.writes) break;
    for (const at::Tensor& output : list) check_writable(output);
  }
  const uint64_t number = call.title.of_tutti == nullptr || call.is_message ? 0 : 1;
  return {call.type,
          options_->replaces_gloo ? call.title.of_gloo : call.title.of_tutti,
          std::move(call.inputs),
          std::move(call.outputs),
          timeout_or_default(call.timeout),
          sequence_.fetch_add(number, std::memory_order_relaxed) + number,
          rank_,
          call.is_message};
}

c10::Device ProcessGroupTutti::device_of(const Call& call) {
  std::optional<c10::Device> device;
  const auto add = [&](const Tensors& tensors) {
    for (const at::Tensor& tensor : tensors) {
      if (!device) device = tensor.device();
      TUTTI_CHECK_ARGUMENT(tensor.device() == *device, call.title.of_tutti, ": tensors are on ", device->str(), " and ",
                           tensor.device().str(), "; use one device");
    }
  };
  add(call.inputs);
  for (const Tensors& list : call.outputs) add(list);
  return device.value_or(c10::kCPU);
}

WorkPtr ProcessGroupTutti::start(Call call, CallWork::Body body) {
  const c10::Device device = device_of(call);
  if (!device.is_cpu()) return start_on(device, std::move(call), body);
  const bool is_async = call.is_async;
  auto work = c10::make_intrusive<CallWork>(describe(std::move(call)), CallWork::Owner{communicator_, queue_, hooks_},
                                            std::move(body));
  const bool may_block = !add_to_section(work) && !is_async;
  queue_->submit(work, may_block ? CallQueue::Mode::kBlocking : CallQueue::Mode::kAsync);
  return work;
}

WorkPtr ProcessGroupTutti::start_on(c10::Device device, Call call, const CallWork::Body& body) {
  join_on(device);
  if (coalescing_) make_messages_of_section();
  const bool is_async = call.is_async || coalescing_;
  const DeviceWorkPtr work = device_calls_->start(
      describe(std::move(call)), is_async ? DeviceCalls::Mode::kOwnStream : DeviceCalls::Mode::kCurrentStream, body);
  add_to_section(work);
  return work;
}

// The calls on CPU tensors include one that joins, so its order among them is the same on all ranks.
void ProcessGroupTutti::join_on(c10::Device device) {
  if (device_calls_->is_on(device, rank_)) return;
  const auto join = [this, device](const CallContext& context) {
    if (device_calls_->is_on(device, rank_)) return;  // Another thread has been here.
    device_calls_->use(join_on_device(context.comm, {nullptr, rank_, size_, options_->timeout}, device, *options_),
                       device);
  };
  start({c10d::OpType::UNKNOWN, {}, c10d::kUnsetTimeout, false, {}, {}}, join)->wait();
}

void ProcessGroupTutti::eagerConnectSingleDevice(at::Device device) {
  const WithoutGil without_gil;
  if (device.is_cuda()) join_on(device);
}

bool ProcessGroupTutti::add_to_section(const WorkPtr& work) {
  if (!coalescing_.load(std::memory_order_relaxed)) return false;
  std::unique_lock<std::mutex> lock(coalescing_mutex_);
  if (!coalescing_) return false;
  coalesced_.push_back(work);
  if (coalesced_.size() < coalesced_limit_) return true;
  lock.unlock();
  release_completed();
  return true;
}

// Bounds the memory of a section that an exception left open, which later calls join.
void ProcessGroupTutti::release_completed() {
  std::vector<WorkPtr> calls;  // Freed after the mutex.
  std::set<WorkPtr> released;
  std::unique_lock<std::mutex> lock(coalescing_mutex_);
  calls = coalesced_;
  lock.unlock();
  // isCompleted() of a message may run callbacks, which may start calls and end the section.
  for (const WorkPtr& call : calls) {
    if (call->isCompleted() && call->isSuccess()) released.insert(call);
  }
  lock.lock();
  std::erase_if(coalesced_, [&](const WorkPtr& call) { return released.count(call) > 0; });
  coalesced_limit_ = std::max(kMinCoalescedLimit, 2 * coalesced_.size());
}

void ProcessGroupTutti::attach_residual(const at::Tensor& buffer, const at::Tensor& residual) {
  const auto attach = [buffer, residual](const CallContext& context) {
    check(tutti_residual_attach(buffer.data_ptr(), static_cast<size_t>(buffer.numel()),
                                reducible_type(buffer.scalar_type()), residual.data_ptr<float>(), context.comm));
  };
  start({c10d::OpType::UNKNOWN, {}, c10d::kUnsetTimeout, false, {buffer}, {}}, attach)->wait();
}

void ProcessGroupTutti::detach_residual(const at::Tensor& buffer) {
  const auto detach = [buffer](const CallContext& context) {
    check(tutti_residual_detach(buffer.data_ptr(), context.comm));
  };
  start({c10d::OpType::UNKNOWN, {}, c10d::kUnsetTimeout, false, {buffer}, {}}, detach)->wait();
}

void ProcessGroupTutti::startCoalescing() {
  std::vector<WorkPtr> abandoned;  // Freed after the mutex.
  std::lock_guard<std::mutex> lock(coalescing_mutex_);
  coalescing_ = true;
  abandoned.swap(coalesced_);
  section_messages_.clear();
  coalesced_limit_ = kMinCoalescedLimit;
}

WorkPtr ProcessGroupTutti::endCoalescing() {
  std::exception_ptr failure;  // The section ends in any case, so that later calls do not join it.
  try {
    if (coalescing_) make_messages_of_section();
  } catch (...) {
    failure = std::current_exception();
  }
  std::vector<WorkPtr> calls;
  {
    std::lock_guard<std::mutex> lock(coalescing_mutex_);
    TORCH_CHECK(coalescing_, "no coalesced section of this process group is open; start one first");
    coalescing_ = false;
    calls.swap(coalesced_);
  }
  if (failure) std::rethrow_exception(failure);
  return c10::make_intrusive<CoalescedWork>(std::move(calls));
}

c10::intrusive_ptr<c10d::Backend> ProcessGroupTutti::split(const StorePtr& store, const std::vector<int>& ranks,
                                                           const c10::intrusive_ptr<Backend::Options>& options) {
  const auto found = std::find(ranks.begin(), ranks.end(), rank_);
  if (found == ranks.end()) return nullptr;
  const int rank = static_cast<int>(found - ranks.begin());
  return c10::make_intrusive<ProcessGroupTutti>(store, rank, static_cast<int>(ranks.size()),
                                                inherit(*options_, options));
}

c10::intrusive_ptr<c10d::Backend> ProcessGroupTutti::merge(const StorePtr& store,
                                                           const c10::intrusive_ptr<Backend::Options>& options,
                                                           const int& rank, const int& size) {
  return c10::make_intrusive<ProcessGroupTutti>(store, rank, size, inherit(*options_, options));
}

c10::intrusive_ptr<c10d::Backend> ProcessGroupTutti::shrink(const std::vector<int64_t>& excluded, int /*flags*/,
                                                            const c10::intrusive_ptr<Backend::Options>& options) {
  WithoutGil without_gil;
  const OptionsPtr inherited = inherit(*options_, options);
  const tutti_comm_options shrinking = comm_options(*inherited);
  const std::vector<int> ranks(excluded.begin(), excluded.end());
  tutti_comm comm = nullptr;
  std::optional<LibraryError> error;
  const auto shrink = [&](const CallContext& context) {
    const tutti_status status =
        tutti_comm_shrink(context.comm, ranks.data(), static_cast<int>(ranks.size()), &shrinking, &comm);
    if (status != tutti_ok) error.emplace(status, tutti_last_error(nullptr), rank_);
  };
  start({c10d::OpType::UNKNOWN, {}, c10d::kUnsetTimeout, false, {}, {}}, shrink)->wait();
  if (error) throw *error;  // The group is as before, so the abort hooks are not called.
  queue_->stop();
  device_calls_->end(OpenCalls::kAbort);
  const auto before = std::count_if(ranks.begin(), ranks.end(), [this](int other) { return other < rank_; });
  const int rank = rank_ - static_cast<int>(before);
  auto communicator = std::make_shared<Communicator>(comm, inherited->timeout, rank);
  return c10::intrusive_ptr<Backend>::unsafe_steal_from_new(
      new ProcessGroupTutti(rank, size_ - static_cast<int>(ranks.size()), inherited, {std::move(communicator), {}}));
}

}  // namespace tutti_torch
