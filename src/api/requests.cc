// Messages with tags, and their requests.
#include <string>

#include "src/api/call_entry.h"
#include "src/api/lifecycle.h"
#include "src/api/on_device.h"
#include "src/messages/endpoint.h"

namespace tutti {
namespace {

// The object behind a request's handle. Any thread may destroy the handle while others use it: they hold a reference.
struct OpenRequest {
  RequestPointer request;
  std::shared_ptr<MessageEndpoint> endpoint;
  tutti_comm comm = nullptr;  // May be destroyed.
};
using OpenRequests = HandleTable<OpenRequest, HandleKind::request>;

constexpr std::int64_t kCancelMs = 20;  // Interval of attempts to cancel.

Status no_request(tutti_request request) {
  if (request == nullptr) return invalid_argument("request is null: make one with tutti_isend or tutti_irecv");
  return invalid_argument("invalid request: it was destroyed, or created before fork()");
}

Result<OpenRequest> request_of(tutti_request handle) {
  OpenRequest found;
  OpenRequests::instance().visit(handle, [&](const OpenRequest& open) { found = open; });
  if (found.request == nullptr) return no_request(handle);
  return found;
}

Result<Rank> peer_of(int peer, Rank ranks, MessageDirection direction) {
  const bool receives = direction == MessageDirection::receive;
  if (receives && peer == TUTTI_ANY_RANK) return kAnyRank;
  if (peer >= 0 && static_cast<Rank>(peer) < ranks) return static_cast<Rank>(peer);
  return invalid_argument("peer " + std::to_string(peer) + " is out of range; ranks are 0.." +
                          std::to_string(ranks - 1) + (receives ? ", or TUTTI_ANY_RANK" : ""));
}

// The rank that a call names, and the endpoint of the calling rank.
struct Target {
  Rank peer = 0;
  std::shared_ptr<MessageEndpoint> endpoint;
};

// The service thread, which moves the data, cannot access memory of a device.
Status check_memory(const MessageCall& call, const CommHandle& handle) {
  const DeviceBackend* backend = handle.shared->on_device;
  if (backend == nullptr || call.count == 0 || !backend->device().holds(call.data)) return {};
  const std::string name = call.direction == MessageDirection::send ? "send" : "recv";
  return unsupported(name + " is in device memory; messages with tags need host memory: copy it, or call tutti_" +
                     name);
}

Result<Target> target_in(const CommHandle& handle, int peer, const MessageCall& call) {
  Target target;
  target.peer = TUTTI_TRY(peer_of(peer, handle.ranks, call.direction));
  Communicator* runner = handle.runner.load(std::memory_order_acquire);
  if (runner == nullptr) return no_runner(handle);
  TUTTI_CHECK_OK(check_memory(call, handle));
  target.endpoint = TUTTI_TRY(runner->messages());
  return target;
}

// Another thread may end the communicator at any time, but not while the table runs the body. Its endpoint may outlive
// it, and then refuses messages.
Result<Target> target_of(tutti_comm comm, int peer, const MessageCall& call) {
  Result<Target> target = Target();
  const auto find = [&](const CommHandle& handle) { target = target_in(handle, peer, call); };
  if (!CommHandles::instance().visit(comm, find)) return no_communicator(comm);
  return target;
}

Status check_call(const MessageCall& call, int type) {
  TUTTI_CHECK_OK(check_type(type));
  if (call.count > kMaxElements) {
    return invalid_argument("count is " + std::to_string(call.count) + ": a message has at most " +
                            std::to_string(kMaxElements) + " elements");
  }
  if (call.data != nullptr || call.count == 0) return {};
  const std::string buffer = call.direction == MessageDirection::send ? "send" : "recv";
  return invalid_argument(buffer + " is null: pass a buffer of " + std::to_string(call.count) + " elements");
}

// Cancels a request, or waits for it if its data are moving.
void cancel(const OpenRequest& open) {
  while (!open.request->complete() && !open.endpoint->cancel(*open.request))
    open.request->wait(Deadline::after_ms(kCancelMs));
}

// Cancels and retires a request in a callback, which must not wait: callbacks that wait for each other never return.
Status end_at_once(tutti_request request) {
  const OpenRequest open = TUTTI_TRY(request_of(request));
  const bool ended = open.request->complete() || open.endpoint->cancel(*open.request);
  if (!ended) return check_outside_callback("destroying a request whose data move");
  if (open.request->retire_at_once()) return {};
  return check_outside_callback("destroying a request whose completion function runs in another thread");
}

// Arguments of tutti_isend and tutti_irecv.
struct MessageArguments {
  MessageDirection direction;
  const void* data;
  std::size_t count;
  int type;
  int peer;
  std::uint64_t tag;
  tutti_comm comm;
};

// Starts a message whose handle exists.
Status start_as(void* handle, const MessageCall& call, const std::shared_ptr<MessageEndpoint>& endpoint,
                tutti_comm comm) {
  const bool sends = call.direction == MessageDirection::send;
  RequestPointer request = TUTTI_TRY(sends ? endpoint->send(call) : endpoint->receive(call));
  OpenRequests::instance().visit(handle, [&](OpenRequest& open) { open = {std::move(request), endpoint, comm}; });
  return {};
}

Status start(const MessageArguments& arguments, tutti_request* request) {
  MessageCall call = {arguments.direction,
                      0,
                      arguments.tag,
                      arguments.count,
                      static_cast<DataType>(arguments.type),
                      static_cast<std::byte*>(const_cast<void*>(arguments.data))};
  TUTTI_CHECK_OK(check_call(call, arguments.type));
  if (request == nullptr) return invalid_argument("request is null: pass a pointer to a tutti_request");
  const Target target = TUTTI_TRY(target_of(arguments.comm, arguments.peer, call));
  call.peer = target.peer;
  // The handle comes first, so that no message starts without one.
  void* handle = TUTTI_TRY(OpenRequests::instance().insert(std::make_unique<OpenRequest>()));
  Status started = caught([&] { return start_as(handle, call, target.endpoint, arguments.comm); });
  if (started.ok()) {
    *request = static_cast<tutti_request>(handle);
    return {};
  }
  OpenRequests::instance().remove(handle);
  return started;
}

// Runs the body of a function of the C API, which may return the failure of `comm` to the caller.
template <typename Body>
tutti_status guarded_call(const char* function, tutti_comm comm, Body&& body) {
  return guarded(function, [&] { return note_failure_of(comm, caught(body)); });
}

void write(const MessageInfo& info, tutti_message* message) {
  if (message == nullptr) return;
  message->peer = static_cast<int>(info.peer);
  message->tag = info.tag;
  message->count = info.count;
}

Status check_message(const tutti_message* message) {
  if (message == nullptr || message->size >= sizeof *message) return {};
  return invalid_argument("message.size is " + std::to_string(message->size) +
                          ": initialize the struct with TUTTI_MESSAGE_DEFAULT");
}

}  // namespace
}  // namespace tutti

using tutti::Deadline;
using tutti::guarded;
using tutti::guarded_call;
using tutti::invalid_argument;
using tutti::MessageDirection;
using tutti::Status;

extern "C" {

tutti_status tutti_isend(const void* send, size_t count, tutti_type type, int peer, uint64_t tag, tutti_comm comm,
                         tutti_request* request) {
  return guarded_call("tutti_isend", comm, [&] {
    return tutti::start({MessageDirection::send, send, count, static_cast<int>(type), peer, tag, comm}, request);
  });
}

tutti_status tutti_irecv(void* recv, size_t count, tutti_type type, int peer, uint64_t tag, tutti_comm comm,
                         tutti_request* request) {
  return guarded_call("tutti_irecv", comm, [&] {
    return tutti::start({MessageDirection::receive, recv, count, static_cast<int>(type), peer, tag, comm}, request);
  });
}

tutti_status tutti_iprobe(int peer, uint64_t tag, tutti_comm comm, int* found, tutti_message* message) {
  return guarded_call("tutti_iprobe", comm, [&]() -> Status {
    if (found == nullptr) return invalid_argument("found is null: pass a pointer to an int");
    TUTTI_CHECK_OK(tutti::check_message(message));
    const tutti::Target target = TUTTI_TRY(tutti::target_of(comm, peer, {.direction = MessageDirection::receive}));
    const auto info = TUTTI_TRY(target.endpoint->probe(target.peer, tag));
    *found = info ? 1 : 0;
    if (info) tutti::write(*info, message);
    return {};
  });
}

tutti_status tutti_request_wait(tutti_request request, int64_t timeout_ms, tutti_message* message) {
  bool complete = false;
  const tutti_status status = guarded("tutti_request_wait", [&]() -> Status {
    TUTTI_CHECK_OK(tutti::check_message(message));
    TUTTI_CHECK_OK(tutti::check_timeout(timeout_ms));
    const tutti::OpenRequest open = TUTTI_TRY(tutti::request_of(request));
    const bool waits = timeout_ms != 0 && !open.request->complete();
    if (waits) TUTTI_CHECK_OK(tutti::check_outside_callback("a timeout other than 0"));
    complete = open.request->wait(timeout_ms == 0 ? Deadline{0} : Deadline::after_ms(timeout_ms));
    if (!complete) return {};
    TUTTI_CHECK_OK(tutti::note_failure_of(open.comm, open.request->status()));
    tutti::write(open.request->info(), message);
    return {};
  });
  return status == tutti_ok && !complete ? tutti_in_progress : status;
}

tutti_status tutti_request_on_completion(tutti_request request, void (*function)(void* argument, tutti_status status),
                                         void* argument) {
  return guarded("tutti_request_on_completion", [&]() -> Status {
    if (function == nullptr) return invalid_argument("function is null: pass the function to call");
    const tutti::OpenRequest open = TUTTI_TRY(tutti::request_of(request));
    return open.request->on_completion([function, argument, comm = open.comm](const Status& status) {
      const tutti_status code =
          tutti::leave("tutti_request_on_completion", tutti::note_failure_of(comm, status.copy()));
      const tutti::CallbackScope scope;
      function(argument, code);
    });
  });
}

tutti_status tutti_request_destroy(tutti_request request) {
  if (request == nullptr) return tutti_ok;
  return guarded("tutti_request_destroy", [&]() -> Status {
    if (tutti::in_callback()) TUTTI_CHECK_OK(tutti::end_at_once(request));
    const auto open = tutti::OpenRequests::instance().remove(request);
    if (open == nullptr) return tutti::no_request(request);
    tutti::cancel(*open);
    open->request->retire();
    return {};
  });
}

}  // extern "C"
