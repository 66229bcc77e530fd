// Memory of a test's buffers: host memory, or that of the GPU emulator. Each test program links one implementation.
#pragma once

#include <nccl.h>

namespace tutti::test {

// Returns the list of devices for ncclCommInitAll().
const int* device_list();

// Returns the stream of a rank. Null on host memory, where calls are complete when they return.
cudaStream_t stream_of(int rank);
// Waits for the rank's stream.
void finish(int rank);

}  // namespace tutti::test
