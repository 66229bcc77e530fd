// GpuDistance of GPUs, with a fake NVML library.
#include "src/executor/cuda/nvml.h"

#include <gtest/gtest.h>

namespace tutti::test {
namespace {

class GpuDistance : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = Nvml::open(FAKE_NVML);
    ASSERT_TRUE(opened.ok()) << std::move(opened).status().message();
    nvml_ = std::move(opened).value();
  }
  static DeviceIdentity gpu(std::uint8_t number) {
    DeviceIdentity identity = {0x77};
    identity.back() = number;
    return identity;
  }
  void expect(std::uint8_t one, std::uint8_t other, P2pLevel level, std::uint32_t links = 0) const {
    for (const bool turned : {false, true}) {
      const DeviceDistance distance =
          turned ? nvml_->distance(gpu(other), gpu(one)) : nvml_->distance(gpu(one), gpu(other));
      EXPECT_TRUE(distance.known);
      EXPECT_EQ(distance.level, level) << int{one} << " and " << int{other};
      EXPECT_EQ(distance.links, links) << int{one} << " and " << int{other};
    }
  }
  std::unique_ptr<Nvml> nvml_;
};

TEST_F(GpuDistance, CountsLinksBetweenTwoGpus) { expect(0, 1, P2pLevel::nvl, 2); }

TEST_F(GpuDistance, CountsAllLinksToSwitches) { expect(2, 3, P2pLevel::nvl, 18); }

TEST_F(GpuDistance, IgnoresLinksToOtherGpus) { expect(0, 2, P2pLevel::sys); }

TEST_F(GpuDistance, IsThatOfCommonAncestor) {
  expect(4, 0, P2pLevel::pix);
  expect(4, 1, P2pLevel::pxb);
  expect(4, 2, P2pLevel::phb);
  expect(4, 3, P2pLevel::sys);
}

TEST_F(GpuDistance, IsUnknown_ForHiddenGpus) {
  EXPECT_FALSE(nvml_->distance(gpu(0), gpu(5)).known);
  EXPECT_FALSE(nvml_->distance(gpu(200), gpu(0)).known);
}

TEST_F(GpuDistance, HasDomainOfSeveralHosts_WhereRegistered) {
  NvlinkDomain wanted = {.clique = 7};
  wanted.cluster.front() = 0xab;
  wanted.cluster.back() = 0xcd;
  for (const std::uint8_t number : {0, 1}) {
    EXPECT_EQ(nvml_->domain(gpu(number)), wanted);
    EXPECT_TRUE(nvml_->domain(gpu(number)).extends_beyond_host());
  }
  for (const std::uint8_t number : {2, 3, 4, 5})
    EXPECT_FALSE(nvml_->domain(gpu(number)).extends_beyond_host()) << int{number};
}

TEST(Nvml, MayBeAbsent) {
  auto absent = Nvml::open("libnone-of-this-name.so.1");
  ASSERT_FALSE(absent.ok());
  EXPECT_NE(std::move(absent).status().message().find("libnone-of-this-name.so.1"), std::string::npos);
}

TEST(Nvml, MayBeTooOld) {
  auto old = Nvml::open("libc.so.6");
  ASSERT_FALSE(old.ok());
  EXPECT_NE(std::move(old).status().message().find("too old"), std::string::npos);
}

}  // namespace
}  // namespace tutti::test
