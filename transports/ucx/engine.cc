#include "transports/ucx/engine.h"

#include <poll.h>

#include <cstring>
#include <utility>

#include "src/base/log.h"
#include "transports/carrier.h"
#include "transports/ucx/end.h"
#include "transports/ucx/frame.h"

namespace tutti {
namespace {

constexpr int kMaxRounds = 16;  // Maximum rounds of progress at a time, so that other work proceeds.
constexpr std::int64_t kCloseMs = 1000;
constexpr std::int64_t kTogetherNs = 200'000'000;  // Ends that close within this interval share a deadline.

Status ucx_error(const std::string& action, ucs_status_t status) {
  return {Code::system, "UCX cannot " + action + ": " + explain_ucx(status)};
}

}  // namespace

Result<std::shared_ptr<UcxEngine>> UcxEngine::make() {
  TUTTI_CHECK_OK(ucx_library());
  std::shared_ptr<UcxEngine> engine(new UcxEngine);
  TUTTI_CHECK_OK(engine->start());
  return engine;
}

Status UcxEngine::start() {
  const UcxLogScope log_scope;
  ucp_config_t* config = nullptr;
  ucs_status_t status = ucx().config_read(nullptr, nullptr, &config);
  if (status != UCS_OK) return ucx_error("read its configuration (UCX_... in the environment)", status);
  // allocate() registers all slots, so no registration cache is needed, which would hook the program's memory calls.
  (void)ucx().config_modify(config, "RCACHE_ENABLE", "n");
  ucp_params_t parameters = {};
  parameters.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
  parameters.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  ucp_context_h context = nullptr;
  status = ucx().init_version(1, 13, &parameters, config, &context);
  ucx().config_release(config);
  if (status != UCS_OK) return ucx_error("start", status);
  context_.reset(context);

  ucp_worker_params_t how = {};
  how.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  how.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  ucp_worker_h worker = nullptr;
  status = ucx().worker_create(context, &how, &worker);
  if (status != UCS_OK) return ucx_error("make a worker", status);
  worker_.reset(worker);
  status = ucx().worker_get_efd(worker, &descriptor_);
  if (status != UCS_OK) return ucx_error("signal arrivals", status);

  ucp_am_handler_param_t handler = {};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                       UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.flags = UCP_AM_FLAG_WHOLE_MSG;
  handler.arg = this;
  for (const auto& [id, take] : {std::pair(kUcxMessage, &receive_message), std::pair(kUcxControl, &receive_control)}) {
    handler.id = id;
    handler.cb = take;
    status = ucx().worker_set_am_recv_handler(worker, &handler);
    if (status != UCS_OK) return ucx_error("take active messages", status);
  }
  return ask_address();
}

// If the address is too long, uses only devices that reach other hosts.
Status UcxEngine::ask_address() {
  std::size_t bytes = 0;
  for (const std::uint32_t which : {0U, std::uint32_t{UCP_WORKER_ADDRESS_FLAG_NET_ONLY}}) {
    ucp_worker_attr_t requested = {};
    requested.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS | UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS;
    requested.address_flags = which;
    const ucs_status_t status = ucx().worker_query(worker_.get(), &requested);
    if (status != UCS_OK) return ucx_error("report its address", status);
    bytes = requested.address_length;
    const auto* from = reinterpret_cast<const std::byte*>(requested.address);
    address_.assign(from, from + bytes);
    ucx().worker_release_address(worker_.get(), requested.address);
    if (bytes + sizeof(UcxAddressHead) <= kMaxCarrierBytes) return {};
  }
  return unsupported("UCX has an address of " + std::to_string(bytes) + " bytes here, and " +
                     std::to_string(kMaxCarrierBytes - sizeof(UcxAddressHead)) +
                     " is the maximum: give it fewer devices with UCX_NET_DEVICES or UCX_TLS");
}

// ---- Memory ----

Result<LaneMemory> UcxEngine::allocate(std::size_t bytes) {
  LaneMemory memory = TUTTI_TRY(HalfLane::allocate_shared(bytes));
  return add(std::move(memory), {.bytes = bytes});
}

// Requires an explicit request: if UCX cannot access such memory directly, it copies with CUDA in the thread that calls
// it. The copy may make that thread wait for another thread, which waits for it.
Result<RegisteredRegion> UcxEngine::register_device_memory(const DeviceRegion& region) {
  const Registered what = {
      .bytes = region.bytes,
      .type = region.kind == MemoryKind::cuda ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_HOST,
      .on_device = true,
  };
  if (!region.ordered) {
    return unsupported("UCX cannot read data back from memory of " + region.name + ", whose kernels might see it late");
  }
  ucp_context_attr_t known = {};
  known.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
  const ucs_status_t status = ucx().context_query(context_.get(), &known);
  if (status != UCS_OK) return ucx_error("report its memory types", status);
  if ((known.memory_types >> what.type & 1) == 0)
    return unsupported("this UCX does not support GPU memory: it was built without CUDA, or UCX_TLS excludes cuda");
  if (!region.gpudirect_required) return unsupported("UCX may block on CUDA: set TUTTI_GPUDIRECT=on to allow it");
  RegisteredRegion reached;
  reached.memory = TUTTI_TRY(add(region.memory, what));
  reached.how = "UCX";
  return reached;
}

Result<LaneMemory> UcxEngine::add(LaneMemory memory, Registered what) {
  ucp_mem_map_params_t requested = {};
  requested.field_mask =
      UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
  requested.address = memory.get();
  requested.length = what.bytes;
  requested.memory_type = what.type;
  {
    const std::lock_guard lock(mutex_);
    const UcxLogScope log_scope;
    const ucs_status_t status = ucx().mem_map(context_.get(), &requested, &what.handle);
    if (status != UCS_OK)
      return ucx_error("register " + std::to_string(what.bytes) + " bytes for lanes (ulimit -l may be too low)",
                       status);
    registered_[memory.get()] = what;
  }
  std::byte* at = memory.get();  // The deleter locks, and runs if its own memory cannot be allocated.
  return LaneMemory(at, [engine = shared_from_this(), memory = std::move(memory)](std::byte* freed) mutable {
    engine->free(freed);
    memory.reset();
  });
}

void UcxEngine::free(std::byte* memory) {
  const std::lock_guard lock(mutex_);
  const UcxLogScope log_scope;
  const auto found = registered_.find(memory);
  (void)ucx().mem_unmap(context_.get(), found->second.handle);
  registered_.erase(found);
}

UcxEngine::Registered UcxEngine::registered(const LaneMemory& memory) const {
  auto found = registered_.upper_bound(memory.get());
  if (found == registered_.begin()) return {};
  --found;
  return memory.get() < found->first + found->second.bytes ? found->second : Registered{};
}

// ---- Receiving ----

void UcxEngine::progress() {
  const UcxLogScope log_scope;
  for (int round = 0; round < kMaxRounds && ucx().worker_progress(worker_.get()) > 0; ++round) {
  }
  if (!requested_.empty()) std::erase_if(requested_, [](UcxEnd* end) { return end->send_pong(); });
}

bool UcxEngine::arm() {
  const UcxLogScope log_scope;
  return ucx().worker_arm(worker_.get()) == UCS_OK;
}

UcxEnd* UcxEngine::find(std::uint64_t token) const {
  const auto found = ends_.find(token);
  return found == ends_.end() ? nullptr : found->second;
}

// A message with an unknown token is from another job, or for an end that was closed.
ucs_status_t UcxEngine::receive_message(void* engine, const void* header, std::size_t header_bytes, void* data,
                                        std::size_t bytes, const ucp_am_recv_param_t* how) {
  UcxMessage message;
  if (header_bytes != sizeof message) return UCS_OK;
  std::memcpy(&message, header, sizeof message);
  UcxEnd* end = static_cast<UcxEngine*>(engine)->find(message.token);
  if (end == nullptr) return UCS_OK;
  const bool is_rendezvous = (how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  return end->receive_message(message.head, {data, bytes, is_rendezvous});
}

ucs_status_t UcxEngine::receive_control(void* engine, const void* header, std::size_t header_bytes, void*, std::size_t,
                                        const ucp_am_recv_param_t*) {
  UcxControl word;
  if (header_bytes != sizeof word) return UCS_OK;
  std::memcpy(&word, header, sizeof word);
  UcxEnd* end = static_cast<UcxEngine*>(engine)->find(word.token);
  if (end != nullptr) end->receive_control(word);
  return UCS_OK;
}

// ---- Closing ----

void UcxEngine::sleep_briefly(std::unique_lock<std::mutex>& lock) const {
  lock.unlock();
  pollfd polled = {descriptor_, POLLIN, 0};
  ::poll(&polled, 1, 1);
  lock.lock();
}

void UcxEngine::close(std::unique_ptr<UcxEnd> end, std::unique_lock<std::mutex>& lock) {
  if (now_ns() - closed_ns_ > kTogetherNs) close_deadline_ = Deadline::after_ms(kCloseMs);
  for (progress(); !end->can_close() && !close_deadline_.passed(); progress()) sleep_briefly(lock);
  end->close();
  const Deadline deadline = Deadline::after_ms(kCloseMs);
  for (progress(); !end->closed() && !deadline.passed(); progress()) sleep_briefly(lock);
  closed_ns_ = now_ns();
  ends_.erase(end->token());
  std::erase(requested_, end.get());
  if (!end->closed()) {
    log(LogLevel::warn, "UCX did not complete pending requests in time: their buffers are leaked");
    (void)end.release();
  }
  lock.unlock();  // Memory must be freed without the lock.
  end.reset();
}

}  // namespace tutti
