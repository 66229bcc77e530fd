// Each kind of fault, by a kernel that has it.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/ptx/lab.h"

namespace tutti::ptx {
namespace {

constexpr const char* kOut = ".param .u64 out";
constexpr const char* kLoadOut = "ld.param.u64 %d1, [out];\nmov.u32 %r1, %tid.x;\n";

// Runs 64 threads with 64 words, and expects a fault whose text contains `words`.
void expect_fault(FaultKind kind, const std::string& body, const std::string& words, const std::string& before = "") {
  Lab lab;
  auto* const out = lab.make<std::uint32_t>(64);
  const auto fault = lab.run(kernel_text(kOut, kLoadOut + body, before), {}, {64, 1, 1}, out);
  ASSERT_TRUE(fault) << body;
  EXPECT_EQ(name(fault->kind), std::string(name(kind))) << fault->text;
  EXPECT_NE(fault->text.find(words), std::string::npos) << fault->text;
  EXPECT_NE(fault->text.find("seed"), std::string::npos) << fault->text;
}

TEST(PtxFault, NamesThreadAndPlace_WhenOutOfBounds) {
  expect_fault(FaultKind::bounds, "mad.wide.u32 %d2, %r1, 8, %d1;\nst.global.u32 [%d2], %r1;",
               "thread (32,0,0) of block (0,0,0) of k accesses 4 bytes");
  expect_fault(FaultKind::bounds, "mad.wide.u32 %d2, %r1, 8, %d1;\nst.global.u32 [%d2], %r1;",
               "`st.global.u32 [%d2], %r1`");
  expect_fault(FaultKind::bounds, "st.shared.u32 [256], %r1;", "0 bytes of shared memory");
  expect_fault(FaultKind::bounds, "ld.local.u32 %r2, [128];", "local memory");
}

TEST(PtxFault, NamesSourceLine_WhenKnown) {
  expect_fault(FaultKind::bounds, ".loc 1 42 7\nst.global.u32 [16], %r1;", "copy.cu:42", ".file 1 \"/src/copy.cu\"\n");
  // A function that the kernel inlines, and one of the toolkit that this function inlines.
  expect_fault(FaultKind::bounds,
               ".loc 1 42 7\n.loc 2 5 3, function_name name, inlined_at 1 42 7\n"
               ".loc 3 8 1, function_name name, inlined_at 2 5 3\nst.global.u32 [16], %r1;",
               "(word.h:5 < copy.cu:42)",
               ".file 1 \"/src/copy.cu\"\n.file 2 \"/src/word.h\"\n.file 3 \"/usr/include/atomic.h\"\n");
}

TEST(PtxFault, IsMisalignedAccess) {
  expect_fault(FaultKind::alignment, "ld.global.u32 %r2, [%d1+2];", "not a multiple of 4");
  expect_fault(FaultKind::alignment, "ld.global.v2.u64 {%d2, %d3}, [%d1+8];", "not a multiple of 16");
}

TEST(PtxFault, IsWrongStateSpace) {
  expect_fault(FaultKind::state_space, "mov.u64 %d2, table;\ncvta.shared.u64 %d3, %d2;\nst.global.u32 [%d3], %r1;",
               "shared memory", ".shared .align 4 .b8 table[4];\n");
  expect_fault(FaultKind::state_space, "st.shared.u32 [%d1+72057594037927936], %r1;", "generic address");
}

TEST(PtxFault, IsUninitialisedValue) {
  expect_fault(FaultKind::uninitialised, "setp.gt.u32 %p1, %r1, 40;\n@%p1 mov.u32 %r2, 1;\nst.global.u32 [%d1], %r2;",
               "register %r2");
  expect_fault(FaultKind::uninitialised, "ld.shared.u32 %r2, [table];", "shared memory",
               ".shared .align 4 .b8 table[4];\n");
  Lab lab;
  const auto halves = lab.run(
      kernel_text("", "st.shared.u16 [table+2], 1;\nld.shared.u32 %r2, [table];", ".shared .align 4 .b8 table[4];\n"),
      {}, {});
  ASSERT_TRUE(halves);
  EXPECT_EQ(halves->kind, FaultKind::uninitialised) << halves->text;
  auto* const in = lab.make<std::uint32_t>(4, 0, true);
  lab.space.mark_written(reinterpret_cast<std::byte*>(in), 10);
  const auto run = [&](const std::string& offset) {
    return lab.run(kernel_text(".param .u64 in", "ld.param.u64 %d1, [in];\nld.global.u32 %r2, [%d1+" + offset + "];"),
                   {}, {}, in);
  };
  EXPECT_FALSE(run("4"));
  for (const char* const offset : {"8", "12"}) {
    const auto fault = run(offset);
    ASSERT_TRUE(fault);
    EXPECT_EQ(fault->kind, FaultKind::uninitialised);
  }
}

TEST(PtxFault, IsUseAfterFree) {
  Lab lab;
  auto* const out = lab.make<std::uint32_t>(4);
  ASSERT_TRUE(lab.space.remove(reinterpret_cast<std::byte*>(out)).ok());
  const auto fault = lab.run(kernel_text(kOut, "ld.param.u64 %d1, [out];\nst.global.u32 [%d1+4], 1;"), {}, {}, out);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::use_after_free) << fault->text;
}

TEST(PtxFault, IsAccessWithoutPeerAccess) {
  Lab lab;
  auto* const out = lab.make<std::uint32_t>(4, 1);
  const std::string text = kernel_text(kOut, "ld.param.u64 %d1, [out];\nst.global.u32 [%d1], 1;");
  EXPECT_FALSE(lab.run(text, {}, {}, out));
  ASSERT_TRUE(lab.space.set_devices(reinterpret_cast<std::byte*>(out), 0).ok());
  const auto fault = lab.run(text, {}, {}, out);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::access_denied) << fault->text;
}

TEST(PtxFault, IsWrongMask) {
  expect_fault(FaultKind::mask, "bar.warp.sync 254;", "0x000000fe does not contain the thread");
  expect_fault(
      FaultKind::mask,
      "setp.lt.u32 %p1, %r1, 8;\n@!%p1 bra END;\nshfl.sync.idx.b32 %r2, %r1, 9, 31, 255;\nEND:", "reads thread 9");
}

TEST(PtxFault, IsDivergentBarrier) {
  expect_fault(FaultKind::barrier,
               "setp.lt.u32 %p1, %r1, 8;\n@%p1 bra A;\nbar.sync 0;\nbra END;\nA:\nbar.sync 0;\nEND:", "divergent");
  expect_fault(FaultKind::barrier, "setp.eq.u32 %p1, %r1, 3;\n@%p1 exit;\nbar.sync 0;", "1 threads of the warp exited");
  expect_fault(FaultKind::barrier, "setp.lt.u32 %p1, %r1, 32;\n@%p1 exit;\nbar.sync 0;",
               "32 of 64 threads wait at barriers");
  expect_fault(
      FaultKind::barrier,
      "setp.lt.u32 %p1, %r1, 32;\n@%p1 bra A;\nbar.sync 0, 64;\nbra END;\nA:\nbar.sync 0, 32;\nEND:", "barrier");
}

TEST(PtxFault, IsTrap) { expect_fault(FaultKind::trap, "trap;", "executes trap"); }

TEST(PtxFault, IsDeadlock_WhenKernelsOnlyPoll) {
  MachineOptions options;
  options.deadlock_ms = 100;
  Lab lab(options);
  auto* const out = lab.make<std::uint32_t>(4);
  out[1] = 5;
  const auto fault =
      lab.run(kernel_text(kOut,
                          "ld.param.u64 %d1, [out];\nAGAIN:\n.loc 1 42 7\nld.acquire.sys.u32 %r1, [%d1+4];\n"
                          ".loc 1 43 7\nsetp.eq.u32 %p1, %r1, 5;\n@%p1 bra AGAIN;",
                          ".file 1 \"/src/wait.cu\"\n"),
              {}, {32, 1, 1}, out);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::deadlock) << fault->text;
  char word[64];
  std::snprintf(word, sizeof word, "the word at 0x%llx is 0x5",
                static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(out + 1)));
  const std::vector<std::string> parts = {
      "\n k on device 0:", "thread (0,0,0) of block (0,0,0)", "`ld.acquire.sys.u32", "(wait.cu:42)", word, "seed"};
  for (const std::string& part : parts)
    EXPECT_NE(fault->text.find(part), std::string::npos) << part << "\n" << fault->text;
}

TEST(PtxFault, EndsOnlyItsLaunch) {
  Lab lab;
  auto* const out = lab.make<std::uint32_t>(4);
  const auto waits = lab.load(kernel_text(
      kOut,
      "ld.param.u64 %d1, [out];\nAGAIN:\nld.acquire.sys.u32 %r1, [%d1];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra AGAIN;"));
  const auto traps = lab.load(kernel_text(kOut, "trap;"));
  const int first = lab.start(waits, {}, {}, out), second = lab.start(traps, {}, {}, out);
  EXPECT_TRUE(lab.wait(second));
  std::atomic_ref<std::uint32_t>(*out).store(1);
  const auto fault = lab.wait(first);
  EXPECT_FALSE(fault) << fault->text;
}

TEST(PtxFault, IsInvalidLaunch) {
  Lab lab;
  const auto module = lab.load(kernel_text(kOut, ""));
  std::uint64_t* const none = nullptr;
  EXPECT_EQ(lab.wait(lab.start(module, {}, {2000, 1, 1}, none))->kind, FaultKind::launch);
  EXPECT_EQ(lab.wait(lab.start(module, {}, {32, 1, 1}))->kind, FaultKind::launch);
  lab.cooperative = true;
  EXPECT_EQ(lab.wait(lab.start(module, {10000, 1, 1}, {32, 1, 1}, none))->kind, FaultKind::launch);
}

}  // namespace
}  // namespace tutti::ptx
