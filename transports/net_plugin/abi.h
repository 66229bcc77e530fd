// ABI of NCCL network plugins, versions 8 to 12, in our own declarations. A plugin library exports objects
// ncclNetPlugin_v8 to ncclNetPlugin_v12. The objects of all versions begin with the same functions in the same order;
// five of these functions have other parameters in some versions.
// Source: NCCL's headers of network plugins (net_v8.h to net_v12.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti::nccl_net {

inline constexpr int kOldest = 8, kNewest = 12;
inline constexpr std::size_t kHandleBytes = 128;
inline constexpr int kHostMemory = 1;  // Type of memory, and bit of the types that a device supports.
inline constexpr int kHostDevice = 0;  // Type of devices whose data need no processing by a GPU.

using Code = std::int32_t;
inline constexpr Code kSuccess = 0;

// Levels: 0 none, 1 version, 2 warning, 3 information, 4 abort, 5 trace. Flags: one bit per subsystem.
using Logger = void (*)(std::int32_t level, unsigned long flags, const char* file, std::int32_t line,
                        const char* format, ...);
// Reports events to a profiler.
using Profiler = Code (*)(void** event, std::int32_t type, void* handle, std::int64_t plugin, void* data);

struct CommunicatorConfig {
  std::int32_t traffic_class = -1;  // -1: the plugin's default.
};
static_assert(sizeof(CommunicatorConfig) == 4);

using Init8 = Code (*)(Logger log);  // Versions 8 and 9.
using Init10 = Code (*)(Logger log, Profiler profiler);
using Init11 = Code (*)(void** context, std::uint64_t communicator, CommunicatorConfig* config, Logger log,
                        Profiler profiler);
using Listen8 = Code (*)(int device, void* handle, void** listening);  // Versions 8 to 10.
using Listen11 = Code (*)(void* context, int device, void* handle, void** listening);
using Connect8 = Code (*)(int device, void* handle, void** sending, void** offload);  // Versions 8 and 9.
using Connect10 = Code (*)(int device, CommunicatorConfig* config, void* handle, void** sending, void** offload);
using Connect11 = Code (*)(void* context, int device, void* handle, void** sending, void** offload);
using Send8 = Code (*)(void* sending, void* data, int bytes, int tag, void* registration, void** request);
using Send9 = Code (*)(void* sending, void* data, std::size_t bytes, int tag, void* registration, void** request);
using Send10 = Code (*)(void* sending, void* data, std::size_t bytes, int tag, void* registration, void* event,
                        void** request);
using Receive8 = Code (*)(void* receiving, int count, void** data, int* bytes, int* tags, void** registrations,
                          void** request);
using Receive9 = Code (*)(void* receiving, int count, void** data, std::size_t* bytes, int* tags, void** registrations,
                          void** request);
using Receive10 = Code (*)(void* receiving, int count, void** data, std::size_t* bytes, int* tags, void** registrations,
                           void** events, void** request);
using Function = void (*)();  // A function of one of the types above, or one that Tutti does not call.

struct Plugin {
  const char* name;
  Function init;
  Code (*devices)(int* count);
  Code (*get_properties)(int device, void* properties);
  Function listen;
  Function connect;  // Sets the connection to null while it must be called again. Keeps its state in the handle.
  Code (*accept)(void* listening, void** receiving, void** offload);  // Null: call it again.
  Code (*register_memory)(void* connection, void* data, std::size_t bytes, int type, void** registration);
  Function register_dma_buf;
  Code (*deregister_memory)(void* connection, void* registration);
  Function send;     // Sets the request to null if it must be called again.
  Function receive;  // Sets the request to null if it must be called again.
  Function flush;
  Code (*test)(void* request, int* done, int* bytes);
  Code (*close_sending)(void* sending);
  Code (*close_receiving)(void* receiving);
  Code (*close_listening)(void* listening);
  Function get_device_registration;
  Function receive_consumed;
};
static_assert(offsetof(Plugin, name) == 0 && offsetof(Plugin, init) == 8 && offsetof(Plugin, devices) == 16);
static_assert(offsetof(Plugin, get_properties) == 24 && offsetof(Plugin, listen) == 32);
static_assert(offsetof(Plugin, connect) == 40 && offsetof(Plugin, accept) == 48);
static_assert(offsetof(Plugin, register_memory) == 56 && offsetof(Plugin, register_dma_buf) == 64);
static_assert(offsetof(Plugin, deregister_memory) == 72 && offsetof(Plugin, send) == 80);
static_assert(offsetof(Plugin, receive) == 88 && offsetof(Plugin, flush) == 96 && offsetof(Plugin, test) == 104);
static_assert(offsetof(Plugin, close_sending) == 112 && offsetof(Plugin, close_receiving) == 120);
static_assert(offsetof(Plugin, close_listening) == 128 && offsetof(Plugin, get_device_registration) == 136);
static_assert(offsetof(Plugin, receive_consumed) == 144 && sizeof(Plugin) == 152);  // Version 8.

struct Plugin11 {
  Plugin plugin;
  Function make_virtual_device;  // Versions 9 and 10 end here.
  Code (*finalize)(void* context);
  Function set_attributes;
};
static_assert(offsetof(Plugin11, make_virtual_device) == 152 && offsetof(Plugin11, finalize) == 160);
static_assert(offsetof(Plugin11, set_attributes) == 168 && sizeof(Plugin11) == 176);

struct Properties8 {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int memory_types;
  int global_registration;
  int megabits_per_second;
  int port;
  float latency_us;
  int max_connections;
  int max_receives;  // Maximum receives per call of receive().
  int device_type;
  int device_version;
};
static_assert(offsetof(Properties8, pci_path) == 8 && offsetof(Properties8, guid) == 16);
static_assert(offsetof(Properties8, memory_types) == 24 && offsetof(Properties8, global_registration) == 28);
static_assert(offsetof(Properties8, megabits_per_second) == 32 && offsetof(Properties8, port) == 36);
static_assert(offsetof(Properties8, latency_us) == 40 && offsetof(Properties8, max_connections) == 44);
static_assert(offsetof(Properties8, max_receives) == 48 && offsetof(Properties8, device_type) == 52);
static_assert(offsetof(Properties8, device_version) == 56 && sizeof(Properties8) == 64);

template <int max_devices>
struct VirtualDevice {
  int count;
  int devices[max_devices];
};

template <int max_devices>
struct Properties9 {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int memory_types;
  int global_registration;
  int force_flush;
  int megabits_per_second;
  int port;
  float latency_us;
  int max_connections;
  int max_receives;
  int device_type;
  int device_version;
  VirtualDevice<max_devices> virtual_device;
  std::size_t max_message_bytes;
  std::size_t max_collective_bytes;
  int max_requests;    // From version 11 on.
  std::int16_t rail;   // Version 12.
  std::int16_t plane;  // Version 12.
};
using Properties11 = Properties9<4>;  // Versions 9 to 11.
using Properties12 = Properties9<8>;
static_assert(offsetof(Properties11, force_flush) == 32 && offsetof(Properties11, megabits_per_second) == 36);
static_assert(offsetof(Properties11, port) == 40 && offsetof(Properties11, latency_us) == 44);
static_assert(offsetof(Properties11, max_connections) == 48 && offsetof(Properties11, max_receives) == 52);
static_assert(offsetof(Properties11, device_type) == 56 && offsetof(Properties11, device_version) == 60);
static_assert(offsetof(Properties11, virtual_device) == 64 && offsetof(Properties11, max_message_bytes) == 88);
static_assert(offsetof(Properties11, max_collective_bytes) == 96 && offsetof(Properties11, max_requests) == 104);
static_assert(sizeof(Properties11) == 112);
static_assert(offsetof(Properties12, device_version) == 60 && offsetof(Properties12, virtual_device) == 64);
static_assert(offsetof(Properties12, max_message_bytes) == 104 && offsetof(Properties12, max_collective_bytes) == 112);
static_assert(offsetof(Properties12, max_requests) == 120 && offsetof(Properties12, rail) == 124);
static_assert(offsetof(Properties12, plane) == 126 && sizeof(Properties12) == 128);

}  // namespace tutti::nccl_net
