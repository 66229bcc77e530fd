#include "tests/nccl/buffers.h"

namespace tutti::test {

const int* device_list() { return nullptr; }

cudaStream_t stream_of(int) { return nullptr; }

void finish(int) {}

}  // namespace tutti::test
