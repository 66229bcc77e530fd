#include "src/executor/cpu/foreign.h"

#include <sys/uio.h>

#include <cerrno>

namespace tutti {
namespace {

using Transfer = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

// The kernel moves at most 2 GiB at once, and may move less.
int transfer(Transfer function, std::int32_t pid, std::byte* here, std::byte* there, std::uint64_t bytes) {
  while (bytes > 0) {
    const iovec local = {here, bytes};
    const iovec remote = {there, bytes};
    const ssize_t moved = function(pid, &local, 1, &remote, 1, 0);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return moved < 0 ? errno : EFAULT;
    here += moved;
    there += moved;
    bytes -= static_cast<std::uint64_t>(moved);
  }
  return 0;
}

}  // namespace

int copy_from_process(std::int32_t pid, std::byte* to, const std::byte* from, std::uint64_t bytes) {
  return transfer(::process_vm_readv, pid, to, const_cast<std::byte*>(from), bytes);
}

int copy_to_process(std::int32_t pid, std::byte* to, const std::byte* from, std::uint64_t bytes) {
  return transfer(::process_vm_writev, pid, const_cast<std::byte*>(from), to, bytes);
}

}  // namespace tutti
