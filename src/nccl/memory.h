// All that depends on where the program's buffers are: on GPUs, or, if TUTTI_NCCL_MEMORY says so, in host memory.
#pragma once

#include <cstddef>

#include "src/nccl/abi.h"
#include "src/nccl/communicator.h"
#include "src/nccl/config.h"
#include "src/nccl/errors.h"
#include "tutti/tutti.h"

namespace tutti::nccl {

// Fails where no memory can be served, and says what to do.
Outcome check_memory();

// The device that the calling thread has chosen. Host memory has one, 0. Fails as check_memory() does.
Outcome current_device(int& device);

// What Settings::memory of a communicator on this device is.
std::string memory_on(int device);

// How a communicator is made for its memory. The options point into `settings`.
tutti_comm_options options_for(const Settings& settings);

// Whether calls return when they are enqueued in the program's stream, which then tells when they are done. On host
// memory they return when they are done, or, of a non-blocking communicator, are in progress meanwhile.
bool enqueues(const Settings& settings);

// The stream that a call runs in: the program's. On host memory that means nothing: a blocking communicator has none, a
// non-blocking one has its own.
tutti_stream stream_for(const Communicator& communicator, cudaStream_t given);

// Where the communicator's buffers lie: on this device. It has joined.
int device_of(const Communicator& communicator);

// Allocates memory of current_device().
Outcome allocate(void** memory, std::size_t size);
Outcome release(void* memory);

}  // namespace tutti::nccl
