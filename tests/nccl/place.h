// Where the buffers of a test's ranks are: in host memory, or on a device, whose part threads of the host play. Each
// test program has one of the two.
#pragma once

#include <nccl.h>

namespace tutti::test {

// For ncclCommInitAll.
const int* device_list();

// Of each rank one of its own. Null on host memory, where calls are done when they return.
cudaStream_t stream_of(int rank);
// Waits for it.
void finish(int rank);

}  // namespace tutti::test
