// Instructions at multicast addresses: sums over the memory of several devices, stores to all, and faults.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "tests/ptx/lab.h"

namespace tutti::ptx {
namespace {

// Two devices with memory, and multicast addresses of both, which are accessible to device 0.
class Multimem : public testing::Test {
 protected:
  void SetUp() override {
    for (int device = 0; device < 2; ++device) replicas_.push_back(lab_.allocate(kBytes, device, false));
    MemoryRange range;
    range.begin = addresses_.data();
    range.bytes = kBytes;
    range.kind = MemoryKind::foreign;
    range.devices = 1;
    range.replicas = [this] { return bound_ ? replicas_ : std::vector<std::byte*>(); };
    ASSERT_TRUE(lab_.space.add(range).ok());
    ASSERT_TRUE(lab_.space.set_devices(replicas_[1], 3).ok());
    result_ = lab_.allocate(kBytes, 0, false);
  }

  template <typename T>
  void put(std::size_t device, const std::vector<T>& items) {
    std::memcpy(replicas_[device], items.data(), items.size() * sizeof(T));
  }
  template <typename T>
  static std::vector<T> get(const std::byte* memory, std::size_t count) {
    std::vector<T> items(count);
    std::memcpy(items.data(), memory, count * sizeof(T));
    return items;
  }

  // Runs the body with the multicast address in %d1 and that of the result in %d2.
  std::optional<Fault> run(const std::string& body, int device = 0) {
    const std::string text =
        kernel_text(".param .u64 a, .param .u64 b", "ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b];" + body);
    return lab_.wait(lab_.start(lab_.load(text, device), {1, 1, 1}, {1, 1, 1}, addresses_.data(), result_));
  }

  static constexpr std::size_t kBytes = 64;
  Lab lab_;
  alignas(64) std::array<std::byte, kBytes> addresses_{};  // Never accessed.
  std::vector<std::byte*> replicas_;
  std::byte* result_ = nullptr;
  bool bound_ = true;
};

TEST_F(Multimem, LoadsSumsOfAllDevices) {
  put<float>(0, {1, 2, 3, 4});
  put<float>(1, {10, 20, 30, 40.5F});
  EXPECT_FALSE(
      run("multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%f1, %f2, %f3, %f4}, [%d1];"
          "st.global.v4.f32 [%d2], {%f1, %f2, %f3, %f4};"));
  EXPECT_EQ(get<float>(result_, 4), (std::vector<float>{11, 22, 33, 44.5F}));
  put<double>(0, {1, 1e300});
  put<double>(1, {0.5, 1e300});
  EXPECT_FALSE(run("multimem.ld_reduce.relaxed.sys.global.add.f64 %e1, [%d1+8]; st.global.f64 [%d2], %e1;"));
  EXPECT_EQ(get<double>(result_, 1), std::vector<double>{2e300});
}

// 16-bit floats are rounded once: 2048 + 1 + 1 would be 2048 if each addition rounded.
TEST_F(Multimem, AddsHalvesWithoutIntermediateRounding) {
  put<std::uint16_t>(0, {0x3c00, 0x4000, 0, 0, 0, 0, 0, 0x7c00});  // 1, 2, and infinity
  put<std::uint16_t>(1, {0x6800, 0xc000, 0, 0, 0, 0, 0, 0x3c00});  // 2048, -2
  replicas_.push_back(replicas_[0]);
  EXPECT_FALSE(
      run("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.f16x2 {%r1, %r2, %r3, %r4}, [%d1];"
          "st.global.v4.u32 [%d2], {%r1, %r2, %r3, %r4};"));
  EXPECT_EQ(get<std::uint16_t>(result_, 8), (std::vector<std::uint16_t>{0x6801, 0x4000, 0, 0, 0, 0, 0, 0x7c00}));
  put<std::uint16_t>(0, {0x3f80, 0});  // 1
  put<std::uint16_t>(1, {0x4380, 0});  // 256
  EXPECT_FALSE(
      run("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2 {%r1, %r2, %r3, %r4}, [%d1];"
          "st.global.v4.u32 [%d2], {%r1, %r2, %r3, %r4};"));
  EXPECT_EQ(get<std::uint16_t>(result_, 1), std::vector<std::uint16_t>{0x4381});  // 258
}

TEST_F(Multimem, StoresToAllDevices) {
  EXPECT_FALSE(run("mov.f32 %f1, 0f40000000; multimem.st.relaxed.sys.global.v4.f32 [%d1+16], {%f1, %f1, %f1, %f1};"));
  for (const std::byte* replica : replicas_)
    EXPECT_EQ(get<float>(replica, 9), (std::vector<float>{0, 0, 0, 0, 2, 2, 2, 2, 0}));
}

TEST_F(Multimem, FaultsAtOtherAddresses) {
  const auto what = [](const std::optional<Fault>& fault) { return fault ? fault->text : "no fault"; };
  const std::string add = "multimem.ld_reduce.relaxed.sys.global.add.f32 %f1, ";
  EXPECT_NE(what(run(add + "[%d2];")).find("executes multimem at an ordinary address"), std::string::npos);
  EXPECT_NE(what(run("ld.global.f32 %f1, [%d1];")).find("accesses a multicast address without multimem"),
            std::string::npos);
  EXPECT_NE(what(run(add + "[%d1];", 1)).find("device 1 did not map the multicast object"), std::string::npos);
  bound_ = false;
  EXPECT_NE(what(run(add + "[%d1];")).find("to which devices bound no memory"), std::string::npos);
}

// Races are those of every device's memory.
TEST_F(Multimem, StoresRaceWithAccessesOfOneDevice) {
  const std::string text = kernel_text(
      ".param .u64 a, .param .u64 b",
      "ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b]; mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 0;"
      "mov.f32 %f1, 0f3f800000; @%p1 multimem.st.relaxed.sys.global.f32 [%d1], %f1; @!%p1 st.global.f32 [%d2], %f1;");
  const auto fault = lab_.wait(lab_.start(lab_.load(text), {2, 1, 1}, {1, 1, 1}, addresses_.data(), replicas_[1]));
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::race);
}

}  // namespace
}  // namespace tutti::ptx
