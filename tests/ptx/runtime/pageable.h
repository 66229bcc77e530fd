// Pageable host memory that devices can access, as on systems with heterogeneous memory management.
#pragma once

#include <cstddef>

namespace tutti::cudart {

// With NodeOptions::pageable, makes the private writable memory of the process known to the machine: heap, stacks and
// static data as they are now. Called before a kernel is launched. Requires the lock.
void show_pageable_memory();
// Hides pageable memory that overlaps this range, which becomes an allocation.
void hide_pageable_memory(const std::byte* begin, std::size_t bytes);

}  // namespace tutti::cudart
