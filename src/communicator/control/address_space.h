// Checks of the memory mapped at addresses of this process.
#pragma once

#include <cstddef>

#include "src/base/status.h"

namespace tutti {

// Fails unless all of [memory, memory + bytes) is private anonymous memory that can be read and written. malloc and
// mmap return such memory. The error names the mapping found: a file, shared memory, code, a stack, or unmapped pages.
Status check_ordinary(const std::byte* memory, std::size_t bytes);

// Fails unless all of [memory, memory + bytes) is the shared memory behind `descriptor`.
Status check_shared(const std::byte* memory, std::size_t bytes, int descriptor);

}  // namespace tutti
