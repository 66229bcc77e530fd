// A network plugin of NCCL over TCP connections, for tests. STAND_IN_VERSION is the version of the ABI, and
// STAND_IN_INTERFACE the network interface. Like plugins for RDMA, it connects in several steps that both ends must
// make, keeps the state of connect() in the handle, sends nothing before the receiver has posted a receive, and makes
// progress only in test().
#include "tests/transports/net_plugin/stand_in.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "tests/transports/net_plugin/sockets.h"
#include "transports/net_plugin/abi.h"

namespace {

using namespace tutti::nccl_net;  // NOLINT(google-build-using-namespace): a plugin implements all of it.

struct Faults {
  std::mutex mutex;
  std::map<std::string, std::pair<int, Code>> planned;
  std::string stalled;
};
Faults& faults() {
  static Faults& all = *new Faults;
  return all;
}
std::atomic<int> unclean = 0, live = 0, inits = 0, last_device = -1;
std::atomic<std::uint64_t> communicator = 0;
std::atomic<int> traffic_class = -1;
std::atomic<int> max_connections = 1000, memory_types = kHostMemory;
std::atomic<long> max_message_bytes = 1 << 30;
std::atomic<bool> blocks = false, blocked = false;
Logger logger = nullptr;

Code fault(const char* function) {
  const std::lock_guard lock(faults().mutex);
  const auto found = faults().planned.find(function);
  if (found == faults().planned.end() || --found->second.first > 0) return kSuccess;
  const Code code = found->second.second;
  faults().planned.erase(found);
  return code;
}
bool stalls(const char* function) {
  const std::lock_guard lock(faults().mutex);
  return faults().stalled == function;
}

Code start(Logger log) {
  if (const Code code = fault("init"); code != kSuccess) return code;
  logger = log;
  ++inits;
  log(3, 16, __FILE__, __LINE__, "stand-in starts, version %d", STAND_IN_VERSION);
  return kSuccess;
}

Code count_devices(int* count) {
  *count = 4;
  return fault("devices");
}

#if STAND_IN_VERSION == 8
using Properties = Properties8;
#elif STAND_IN_VERSION < 12
using Properties = Properties11;
#else
using Properties = Properties12;
#endif
// Versions 9 and 10 lack the last members.
constexpr std::size_t kPropertyBytes = sizeof(Properties) - (STAND_IN_VERSION == 9 || STAND_IN_VERSION == 10 ? 8 : 0);

Code get_properties(int device, void* properties) {
  static char names[4][8] = {"slow0", "fast1", "fast2", "gpu3"};
  Properties all = {};
  all.name = names[device];
  all.memory_types = device == 3 ? 2 : memory_types.load();
  all.megabits_per_second = device == 0 ? 1000 : 100000;
  all.max_connections = max_connections;
  all.max_receives = 1;
  const auto limit = [](auto& known) {
    if constexpr (requires { known.max_message_bytes; })
      known.max_message_bytes = static_cast<std::size_t>(max_message_bytes);
  };
  limit(all);
  std::memcpy(properties, &all, kPropertyBytes);
  return fault("getProperties");
}

Code close_listening(void* memory) {
  std::unique_ptr<Listening> listening(static_cast<Listening*>(memory));
  ::close(listening->listener);
  if (listening->accepted >= 0) ::close(listening->accepted);
  --live;
  return fault("closeListen");
}

Code listen_on(int device, void* handle, void** listening) {
  last_device = device;
  Handle mine = {};
  socklen_t bytes = sizeof mine.address;
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto* address = reinterpret_cast<sockaddr*>(&mine.address);
  ifreq interface = {};
  std::memcpy(interface.ifr_name, STAND_IN_INTERFACE, sizeof STAND_IN_INTERFACE);
  const bool found = socket >= 0 && ::ioctl(socket, SIOCGIFADDR, &interface) == 0;
  std::memcpy(address, &interface.ifr_addr, bytes);
  if (!found || ::bind(socket, address, bytes) != 0 || ::listen(socket, 8) != 0 ||
      ::getsockname(socket, address, &bytes) != 0) {
    if (socket >= 0) ::close(socket);
    return kSystemError;
  }
  unblock(socket);
  std::memcpy(handle, &mine, sizeof mine);
  *listening = new Listening{socket};
  ++live;
  const Code code = fault("listen");
  if (code != kSuccess) (void)close_listening(*listening);
  return code;
}

Code connect_to(void* memory, void** sending) {
  *sending = nullptr;
  if (const Code code = fault("connect"); code != kSuccess) return code;
  if (stalls("connect")) return kSuccess;
  auto& handle = *static_cast<Handle*>(memory);
  if (handle.stage == 0) {
    handle.socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    handle.stage = 1;
    if (handle.socket < 0) return kSystemError;
    send_at_once(handle.socket);
    const int result = ::connect(handle.socket, reinterpret_cast<sockaddr*>(&handle.address), sizeof handle.address);
    return result == 0 || errno == EINPROGRESS ? kSuccess : kSystemError;
  }
  char accepted = 0;  // The first byte says that the other end has accepted; each further one, that it has posted.
  const ssize_t got = ::recv(handle.socket, &accepted, 1, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == ENOTCONN)) return kSuccess;
  if (got <= 0) return kRemoteError;
  *sending = new Connection{.socket = handle.socket, .sends = true, .credits = 0, .requests = {}, .memory = {}};
  ++live;
  return kSuccess;
}

Code accept_from(void* memory, void** receiving, void**) {
  *receiving = nullptr;
  if (const Code code = fault("accept"); code != kSuccess) return code;
  if (stalls("accept")) return kSuccess;
  auto& listening = *static_cast<Listening*>(memory);
  if (listening.accepted < 0) {
    listening.accepted = ::accept4(listening.listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    return listening.accepted >= 0 || errno == EAGAIN ? kSuccess : kSystemError;
  }
  send_at_once(listening.accepted);
  if (::send(listening.accepted, "a", 1, MSG_NOSIGNAL) != 1) return kRemoteError;
  *receiving = new Connection{.socket = listening.accepted, .sends = false, .credits = 0, .requests = {}, .memory = {}};
  listening.accepted = -1;
  ++live;
  return kSuccess;
}

Code register_memory(void*, void* data, std::size_t bytes, int type, void** registration) {
  if (const Code code = fault("regMr"); code != kSuccess) return code;
  if (type != kHostMemory || data == nullptr) return kInvalidArgument;
  *registration = new std::size_t(bytes);
  ++live;
  return kSuccess;
}
Code deregister_memory(void*, void* registration) {
  delete static_cast<std::size_t*>(registration);
  --live;
  return fault("deregMr");
}

Code send_data(void* memory, void* data, std::size_t bytes, int, void* registration, void** request) {
  *request = nullptr;
  if (const Code code = fault("isend"); code != kSuccess) return code;
  if (stalls("isend")) return kSuccess;
  if (registration == nullptr) return kInvalidArgument;
  auto& connection = *static_cast<Connection*>(memory);
  char posted[64];
  const ssize_t got = ::recv(connection.socket, posted, sizeof posted, MSG_DONTWAIT);
  if (got == 0) return kRemoteError;
  if (got > 0) connection.credits += static_cast<int>(got);
  if (got < 0 && errno != EAGAIN) return kSystemError;
  if (connection.credits == 0) return kSuccess;
  *request = add(connection, data, bytes);
  if (*request != nullptr) --connection.credits;
  return kSuccess;
}

Code receive_data(void* memory, int count, void* data, std::size_t bytes, void* registration, void** request) {
  *request = nullptr;
  if (const Code code = fault("irecv"); code != kSuccess) return code;
  if (stalls("irecv")) return kSuccess;
  if (count != 1 || registration == nullptr) return kInvalidArgument;
  auto& connection = *static_cast<Connection*>(memory);
  *request = add(connection, data, bytes);
  if (*request != nullptr) (void)!::send(connection.socket, "p", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  return kSuccess;
}

Code test_request(void* memory, int* done, int* bytes) {
  auto& request = *static_cast<Request*>(memory);
  Connection& connection = *request.connection;
  if (!connection.sends && blocks) {
    blocked = true;
    blocks.wait(true);
  }
  if (const Code code = fault(connection.sends ? "test of isend" : "test of irecv"); code != kSuccess) return code;
  const Code code = request.done ? kSuccess : progress(connection);
  *done = request.done ? 1 : 0;
  if (!request.done) return code;
  if (bytes != nullptr) *bytes = static_cast<int>(request.head);
  request.connection = nullptr;
  return kSuccess;
}

Code close_connection(void* memory) {
  std::unique_ptr<Connection> connection(static_cast<Connection*>(memory));
  ::close(connection->socket);
  --live;
  if (!connection->requests.empty()) ++unclean;
  return fault(connection->sends ? "closeSend" : "closeRecv");
}

#if STAND_IN_VERSION >= 11
Code init(void** context, std::uint64_t number, CommunicatorConfig* config, Logger log, Profiler) {
  if (const Code code = start(log); code != kSuccess) return code;
  communicator = number;
  traffic_class = config->traffic_class;
  *context = new int(7);
  ++live;
  return kSuccess;
}
Code finalize(void* context) {
  delete static_cast<int*>(context);
  --live;
  return fault("finalize");
}
Code listen(void* context, int device, void* handle, void** listening) {
  return *static_cast<int*>(context) == 7 ? listen_on(device, handle, listening) : kInvalidArgument;
}
Code connect(void* context, int, void* handle, void** sending, void** offload) {
  return *static_cast<int*>(context) == 7 && *offload == nullptr ? connect_to(handle, sending) : kInvalidArgument;
}
#else
#if STAND_IN_VERSION == 10
Code init(Logger log, Profiler) { return start(log); }
Code connect(int, CommunicatorConfig* config, void* handle, void** sending, void** offload) {
  traffic_class = config->traffic_class;
  return *offload == nullptr ? connect_to(handle, sending) : kInvalidArgument;
}
#else
Code init(Logger log) { return start(log); }
Code connect(int, void* handle, void** sending, void** offload) {
  return *offload == nullptr ? connect_to(handle, sending) : kInvalidArgument;
}
#endif
Code listen(int device, void* handle, void** listening) { return listen_on(device, handle, listening); }
#endif

#if STAND_IN_VERSION == 8
using Size = int;
#else
using Size = std::size_t;
#endif
#if STAND_IN_VERSION >= 10
Code isend(void* connection, void* data, Size bytes, int tag, void* registration, void*, void** request) {
  return send_data(connection, data, bytes, tag, registration, request);
}
Code irecv(void* connection, int count, void** data, Size* bytes, int*, void** registrations, void**, void** request) {
  return receive_data(connection, count, data[0], bytes[0], registrations[0], request);
}
#else
Code isend(void* connection, void* data, Size bytes, int tag, void* registration, void** request) {
  return send_data(connection, data, static_cast<std::size_t>(bytes), tag, registration, request);
}
Code irecv(void* connection, int count, void** data, Size* bytes, int*, void** registrations, void** request) {
  return receive_data(connection, count, data[0], static_cast<std::size_t>(bytes[0]), registrations[0], request);
}
#endif

Function generic(auto* function) { return reinterpret_cast<Function>(function); }

Plugin table() {
  return {.name = "Stand-in",
          .init = generic(init),
          .devices = count_devices,
          .get_properties = get_properties,
          .listen = generic(listen),
          .connect = generic(connect),
          .accept = accept_from,
          .register_memory = register_memory,
          .register_dma_buf = nullptr,
          .deregister_memory = deregister_memory,
          .send = generic(isend),
          .receive = generic(irecv),
          .flush = nullptr,
          .test = test_request,
          .close_sending = close_connection,
          .close_receiving = close_connection,
          .close_listening = close_listening,
          .get_device_registration = nullptr,
          .receive_consumed = nullptr};
}

void fail(const char* function, int call, int code) {
  const std::lock_guard lock(faults().mutex);
  faults().planned[function] = {call, code};
}
void stall(const char* function) {
  const std::lock_guard lock(faults().mutex);
  faults().stalled = function == nullptr ? "" : function;
}
void block(const char* function) {
  blocked = false;
  blocks = function != nullptr;
  blocks.notify_all();
}
void set_devices(int connections, int types, long bytes) {
  max_connections = connections;
  memory_types = types;
  max_message_bytes = bytes;
}

}  // namespace

extern "C" {

#define STAND_IN_NAME_OF(version) ncclNetPlugin_v##version
#define STAND_IN_NAME(version) STAND_IN_NAME_OF(version)
#if STAND_IN_VERSION >= 11
extern Plugin11 STAND_IN_NAME(STAND_IN_VERSION);
Plugin11 STAND_IN_NAME(STAND_IN_VERSION) = {table(), nullptr, finalize, nullptr};
#else
extern Plugin STAND_IN_NAME(STAND_IN_VERSION);
Plugin STAND_IN_NAME(STAND_IN_VERSION) = table();
#endif

extern tutti::test::NetStandIn tutti_stand_in;
tutti::test::NetStandIn tutti_stand_in = {.fail = fail,
                                          .stall = stall,
                                          .block = block,
                                          .is_blocked = [] { return blocked.load(); },
                                          .set_devices = set_devices,
                                          .live = [] { return live.load(); },
                                          .closed_with_requests = [] { return unclean.load(); },
                                          .initialized = [] { return inits.load(); },
                                          .last_communicator = [] { return communicator.load(); },
                                          .used_device = [] { return last_device.load(); },
                                          .last_traffic_class = [] { return traffic_class.load(); }};
}
