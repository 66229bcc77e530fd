// Forks while another thread uses the library. The child must not wait for locks of threads that exist only in the
// parent.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "src/bootstrap/bootstrap.h"
#include "src/communicator/control/regions.h"
#include "tests/bootstrap/processes.h"

namespace tutti::test {
namespace {

// Joins a bootstrap of one rank with a new id. Returns "ok" or an error.
std::string join_alone() {
  RendezvousOptions options;
  options.scope = ListenScope::host;
  Result<UniqueId> id = make_unique_id(options);
  if (!id.ok()) return std::move(id).status().message();
  Result<std::unique_ptr<Bootstrap>> joined = Bootstrap::join(id.value(), 0, 1, {});
  return joined.ok() ? "ok" : std::move(joined).status().message();
}

TEST(Fork, ChildCanJoin_WhileAnotherThreadJoins) {
  std::atomic<bool> done = false;
  std::thread other([&] {
    while (!done) (void)join_alone();
  });
  for (int i = 0; i < 100; ++i) {
    Processes processes;
    processes.start([] {
      ::alarm(20);  // Turns a hang of the child into a failure.
      return join_alone();
    });
    EXPECT_EQ(processes.report(0), "ok") << "fork " << i;
    if (HasFailure()) break;
  }
  done = true;
  other.join();
}

// Allocates and frees a region. Returns "ok" or an error.
std::string allocate_and_free() {
  auto memory = Regions::of_process().allocate(1 << 20);
  if (!memory.ok()) return std::move(memory).status().message();
  memory.value()[0] = std::byte{1};
  Status freed = Regions::of_process().free(memory.value());
  return freed.ok() ? "ok" : std::string(freed.message());
}

TEST(Fork, ChildCanAllocate_WhileAnotherThreadAllocates) {
  std::atomic<bool> done = false;
  std::thread other([&] {
    while (!done) (void)allocate_and_free();
  });
  for (int i = 0; i < 100 && !HasFailure(); ++i) {
    Processes processes;
    processes.start([] {
      ::alarm(20);
      return allocate_and_free();
    });
    EXPECT_EQ(processes.report(0), "ok") << "fork " << i;
  }
  done = true;
  other.join();
}

}  // namespace
}  // namespace tutti::test
