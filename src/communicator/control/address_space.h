// Checks of the memory mapped at addresses of this process.
#pragma once

#include <cstddef>

#include "src/base/status.h"

namespace tutti {

// Fails, and names the mapping found, unless all of [memory, memory + bytes) is readable and writable private anonymous
// memory. malloc and mmap return such memory; files, shared memory, code, stacks and unmapped pages fail.
Status check_ordinary(const std::byte* memory, std::size_t bytes);

// Fails unless all of [memory, memory + bytes) is the shared memory behind `descriptor`.
Status check_shared(const std::byte* memory, std::size_t bytes, int descriptor);

}  // namespace tutti
