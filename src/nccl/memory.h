// All that depends on where the program's buffers are. There is host memory only; device memory comes here.
#pragma once

#include <cstddef>

#include "src/nccl/abi.h"
#include "src/nccl/config.h"
#include "src/nccl/errors.h"
#include "tutti/tutti.h"

namespace tutti::nccl {

// Fails where no memory can be served, and says what to do.
Outcome check_memory();

// How a communicator is made for this memory. The options point into `settings`.
tutti_comm_options options_for(const Settings& settings);

// The device that the calling thread has chosen. Host memory has one, 0.
int current_device();

// The stream that a call runs in. On host memory the program's means nothing: a blocking communicator has none, so that
// calls return when they are done; a non-blocking one has its own, `own`.
tutti_stream stream_for(cudaStream_t given, tutti_stream own);

Outcome allocate(void** memory, std::size_t size);
Outcome release(void* memory);

// A scalar that ncclScalarDevice names, read when its call is launched: on the host like any other.
void read_scalar(void* to, const void* scalar, std::size_t size);

}  // namespace tutti::nccl
