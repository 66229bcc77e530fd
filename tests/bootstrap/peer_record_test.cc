#include "src/bootstrap/peer_record.h"

#include <gtest/gtest.h>

#include "tests/base/many_cpus.h"

namespace tutti::test {
namespace {

TEST(PeerRecord, CountsCpusBeyondOneSet) {
  const test::ManyCpus kernel({1500, 1501, 4095});
  const auto record = own_record();
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(record.value().own_cpus, 3);
  EXPECT_EQ(record.value().first_cpu, 1500);
}

}  // namespace
}  // namespace tutti::test
