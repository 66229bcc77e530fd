// The memory of a test's buffers: host memory, or the GPU emulator. Each test program links one of the two.
#pragma once

#include <nccl.h>

namespace tutti::test {

// For ncclCommInitAll.
const int* device_list();

// Each rank has its own stream. Null on host memory, where calls are complete when they return.
cudaStream_t stream_of(int rank);
// Waits for the rank's stream.
void finish(int rank);

}  // namespace tutti::test
