// Memory of another process that is not mapped here, copied through the kernel: once, where slots in shared memory take
// two copies, for the price of a system call and of looking up the pages (cross memory attach, process_vm_readv(2)).
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti {

// Addresses are those of process `pid`. 0, or an errno: EPERM where the system forbids it, ESRCH when the process is
// gone, EFAULT where it has no such memory.
int copy_from_process(std::int32_t pid, std::byte* to, const std::byte* from, std::uint64_t bytes);
int copy_to_process(std::int32_t pid, std::byte* to, const std::byte* from, std::uint64_t bytes);

}  // namespace tutti
