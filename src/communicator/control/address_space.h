// Kinds of memory at the addresses of this process.
#pragma once

#include <cstddef>

#include "src/base/status.h"

namespace tutti {

// Fails, and says what is there, unless all of [memory, memory + bytes) is private anonymous memory that can be read
// and written: what malloc and mmap give, and no file, shared memory, code, stack or gap.
Status check_ordinary(const std::byte* memory, std::size_t bytes);

// Fails unless all of it is the shared memory behind this descriptor.
Status check_shared(const std::byte* memory, std::size_t bytes, int descriptor);

}  // namespace tutti
