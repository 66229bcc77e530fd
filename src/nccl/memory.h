// Functions that depend on the memory of buffers: on GPUs, or in host memory if TUTTI_NCCL_MEMORY is "host".
#pragma once

#include <cstddef>

#include "src/nccl/abi.h"
#include "src/nccl/communicator.h"
#include "src/nccl/config.h"
#include "src/nccl/errors.h"
#include "tutti/tutti.h"

namespace tutti::nccl {

inline constexpr const char* kHostMemory = "host";  // Settings::memory of communicators on host memory.

// Fails, with advice, if no supported memory is available.
Outcome check_memory();

// Returns the current device of the calling thread; 0 for host memory. Fails like check_memory().
Outcome current_device(int& device);

// Value of Settings::memory for a communicator on this device.
std::string memory_on(int device);

// Options for creating a communicator. They point into `settings`. As in NCCL, waits have no time limit, unless the
// environment sets one: the client decides how long it waits for peers.
tutti_comm_options options_for(const Settings& settings);

// True if calls return once they are enqueued in the program's stream. On host memory, calls return when they are done,
// or, with a non-blocking communicator, are in progress until then.
bool enqueues(const Settings& settings);

// Stream in which a call runs. On GPUs it is the program's. Host memory ignores that: null for a blocking communicator,
// and a stream of the communicator for a non-blocking one.
tutti_stream stream_for(const Communicator& communicator, cudaStream_t given);

// Device of the communicator's buffers. The communicator must have joined.
int device_of(const Communicator& communicator);

// Allocates memory on current_device().
Outcome allocate(void** memory, std::size_t size);
Outcome release(void* memory);

}  // namespace tutti::nccl
