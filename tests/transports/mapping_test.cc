// Shared memory when other allocations fail.
#include "transports/shm/mapping.h"
#include "src/base/file.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <string>

#include "src/base/caught.h"
#include "tests/communicator/refusal.h"

namespace tutti::test {
namespace {

constexpr std::size_t kBytes = 64 * 1024;

bool is_mapped(const std::string& name) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(name) != std::string::npos) return true;
  }
  return false;
}

TEST(Mapping, LeavesNothingMapped_WhenAllocationFails) {
  const File file(::memfd_create("tutti-mapping-test", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), kBytes), 0);
  for (const auto make : {Mapping::make, Mapping::share}) {
    std::uint64_t which = 1;
    for (bool came = true; came && which < 100; ++which) {
      {
        std::optional<Refusal> refusal(which);
        const auto made = caught([&] { return make(file.get(), kBytes); });
        came = refusal->came();
        refusal.reset();
        EXPECT_EQ(made.ok(), !came) << which;
        EXPECT_EQ(is_mapped("tutti-mapping-test"), made.ok()) << which;
      }
      EXPECT_FALSE(is_mapped("tutti-mapping-test")) << which;
    }
    EXPECT_GT(which, 2U);
  }
}

}  // namespace
}  // namespace tutti::test
