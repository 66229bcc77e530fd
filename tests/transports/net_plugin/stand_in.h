// Functions that the stand-in network plugins export for tests, by dlsym().
#pragma once

#include <cstdint>

namespace tutti::test {

struct NetStandIn {
  // Makes call number `call` (from 1) of a function, counted from here, fail with a code of NCCL.
  void (*fail)(const char* function, int call, int code);
  // Makes an endless number of calls of a function return no result: connect, accept, isend or irecv. Null: none.
  void (*stall)(const char* function);
  // Makes calls of a function wait: test of irecv. Null: these calls go on.
  void (*block)(const char* function);
  bool (*is_blocked)();  // A call waits.
  void (*set_devices)(int max_connections, int memory_types, long max_message_bytes);
  // Number of objects that were created and not released: contexts, connections, registrations.
  int (*live)();
  int (*closed_with_requests)();         // Number of connections that were closed with pending requests.
  int (*initialized)();                  // Number of calls of init.
  std::uint64_t (*last_communicator)();  // Number of the communicator of the last init.
  int (*used_device)();                  // Device of the last call of listen.
  int (*last_traffic_class)();           // The latest that init got, in version 10 connect.
};

}  // namespace tutti::test
