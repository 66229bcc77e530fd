#include "src/base/own_cpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <thread>
#include <vector>

#include "tests/base/many_cpus.h"

namespace tutti::test {
namespace {

using Cpus = std::vector<std::uint32_t>;

TEST(OwnCpus, ReturnsAffinityOfThread) {
  const Cpus cpus = own_cpus();
  ASSERT_FALSE(cpus.empty());
  EXPECT_TRUE(std::is_sorted(cpus.begin(), cpus.end()));
  std::vector<cpu_set_t> sets(kMaxOwnCpus / CPU_SETSIZE);
  const std::size_t bytes = sets.size() * sizeof sets[0];
  ASSERT_EQ(::sched_getaffinity(0, bytes, sets.data()), 0);
  EXPECT_EQ(cpus.size(), static_cast<std::size_t>(CPU_COUNT_S(bytes, sets.data())));
  for (const std::uint32_t cpu : cpus) EXPECT_TRUE(CPU_ISSET_S(cpu, bytes, sets.data())) << cpu;
}

TEST(OwnCpus, ExcludesCpusOfOtherThreads) {
  const Cpus before = own_cpus();
  ASSERT_FALSE(before.empty());
  std::thread([&] {
    std::vector<cpu_set_t> sets(kMaxOwnCpus / CPU_SETSIZE);
    const std::size_t bytes = sets.size() * sizeof sets[0];
    CPU_SET_S(before.back(), bytes, sets.data());
    ASSERT_EQ(::sched_setaffinity(0, bytes, sets.data()), 0);
    EXPECT_EQ(own_cpus(), Cpus{before.back()});
  }).join();
  EXPECT_EQ(own_cpus(), before);
}

TEST(OwnCpus, ReturnsAllCpus_WhenKernelHasMoreThanOneSetHolds) {
  const Cpus all = {0, 63, 64, 1023, 1024, 4095};
  const test::ManyCpus kernel(all);
  EXPECT_EQ(own_cpus(), all);
}

TEST(OwnCpus, IsEmpty_WhenNoSetFits) {
  const test::ManyCpus kernel({0}, 2 * kMaxOwnCpus);
  EXPECT_TRUE(own_cpus().empty());
  EXPECT_EQ(errno, EINVAL);
}

}  // namespace
}  // namespace tutti::test
