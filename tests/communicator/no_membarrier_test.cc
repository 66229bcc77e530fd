// Waits of ranks whose kernel, or sandbox, has no membarrier().
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>

#include "src/base/sleep_word.h"
#include "src/communicator/control/board.h"
#include "tests/communicator/random_pauses.h"

namespace tutti::test {
namespace {

// Makes membarrier() fail in this thread and in threads that it starts. Returns false if the kernel does not allow it.
bool forbid_membarrier() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {static_cast<unsigned short>(std::size(filter)), filter};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(WaitWithoutMembarrier, Ends_WithRandomPauses) {
  if (!forbid_membarrier()) GTEST_SKIP() << "the kernel does not allow seccomp filters";
  ASSERT_FALSE(allow_heavy_fence());
  for (const Rank ranks : {2U, 3U}) {
    CommunicatorOptions options;
    options.wait = WaitMode::sleep;
    Communicators made = make_ranks(ranks, options);
    EXPECT_EQ(load_acquire(&made[0]->board().entry(1).allows_heavy_fence), 0U);
    make_calls_with_pauses(std::move(made), 150);
  }
}

}  // namespace
}  // namespace tutti::test
