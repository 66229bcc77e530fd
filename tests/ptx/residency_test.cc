// Which thread blocks run at the same time, and the clock.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "src/base/atomic.h"
#include "tests/ptx/lab.h"

namespace tutti::ptx {
namespace {

// Each block adds one to the word and waits until it is `count`.
const std::string kMeet =
    kernel_text(".param .u64 word, .param .u32 count",
                "ld.param.u64 %d1, [word];\nld.param.u32 %r1, [count];\nred.relaxed.gpu.global.add.u32 [%d1], 1;\n"
                "AGAIN:\nld.relaxed.gpu.u32 %r2, [%d1];\nsetp.lt.u32 %p1, %r2, %r1;\n@%p1 bra AGAIN;");

DeviceLimits small_device() {
  DeviceLimits limits;
  limits.multiprocessors = 2;
  limits.blocks_per_multiprocessor = 2;
  return limits;
}

MachineOptions impatient() {
  MachineOptions options;
  options.deadlock_ms = 200;
  return options;
}

TEST(PtxResidency, RunsBlocksThatFitTogether) {
  Lab lab(impatient(), small_device());
  const auto meet = lab.load(kMeet);
  auto* const word = lab.make<std::uint32_t>(1);
  const auto fault = lab.wait(lab.start(meet, {4, 1, 1}, {32, 1, 1}, word, 4U * 32));
  EXPECT_FALSE(fault) << fault->text;
}

TEST(PtxResidency, IsDeadlock_WhenBlocksWaitForOneThatDoesNotFit) {
  Lab lab(impatient(), small_device());
  const auto meet = lab.load(kMeet);
  auto* const word = lab.make<std::uint32_t>(1);
  const auto fault = lab.wait(lab.start(meet, {5, 1, 1}, {32, 1, 1}, word, 5U * 32));
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::deadlock) << fault->text;
  EXPECT_NE(fault->text.find("1 launches wait for room"), std::string::npos) << fault->text;
}

TEST(PtxResidency, StartsLaunchesInOrder) {
  Lab lab({}, small_device());
  const auto meet = lab.load(kMeet);
  auto* const words = lab.make<std::uint32_t>(64);
  lab.cooperative = true;
  const int first = lab.start(meet, {3, 1, 1}, {32, 1, 1}, words, 4U * 32);  // Waits for the host, too.
  const int second = lab.start(meet, {2, 1, 1}, {32, 1, 1}, words + 16, 2U * 32);
  lab.cooperative = false;
  const int third = lab.start(meet, {1, 1, 1}, {32, 1, 1}, words + 32, 32U);  // Fits, but comes after the second.
  while (load_acquire(words) < 3 * 32) {
  }
  EXPECT_EQ(load_acquire(words + 16), 0U);
  EXPECT_EQ(load_acquire(words + 32), 0U);
  EXPECT_TRUE(lab.machine->busy(0));
  EXPECT_FALSE(lab.machine->busy(1));
  store_release(words, 4U * 32);
  for (const int launch : {first, second, third}) {
    const auto fault = lab.wait(launch);
    EXPECT_FALSE(fault) << fault->text;
  }
}

TEST(PtxResidency, CountsBlocksPerMultiprocessor) {
  Lab lab;
  const auto module = lab.load(kMeet);
  const KernelInfo& kernel = module->program()->kernels()[0];
  EXPECT_EQ(lab.machine->blocks_per_multiprocessor(*module, kernel, 1024, 0), 2U);
  EXPECT_EQ(lab.machine->blocks_per_multiprocessor(*module, kernel, 512, 100'000), 2U);
  EXPECT_EQ(lab.machine->blocks_per_multiprocessor(*module, kernel, 32, 0), 32U);
  EXPECT_EQ(lab.machine->blocks_per_multiprocessor(*module, kernel, 32, 300'000), 0U);
}

// A wait of 50 ms ends although no time passes by instructions.
TEST(PtxResidency, AdvancesClockWhileKernelsWait) {
  Lab lab;
  auto* const word = lab.make<std::uint32_t>(1);
  const std::uint64_t before = lab.machine->now_ns();
  const auto fault = lab.run(
      kernel_text(
          ".param .u64 word",
          "ld.param.u64 %d1, [word];\nmov.u64 %d2, %globaltimer;\nAGAIN:\nld.relaxed.sys.u32 %r1, [%d1];\n"
          "mov.u64 %d3, %globaltimer;\nsub.s64 %d4, %d3, %d2;\nsetp.lt.u64 %p1, %d4, 50000000;\n@%p1 bra AGAIN;"),
      {}, {}, word);
  EXPECT_FALSE(fault) << fault->text;
  EXPECT_GE(lab.machine->now_ns() - before, 49'000'000U);  // Blocks read the clock at slightly different times.
  EXPECT_LT(lab.machine->counters().warp_instructions, 50'000'000U);
}

// Runs the kernel and returns its line of counts: the kernel's name, then numbers.
std::string counts_of(const std::string& parameters, const std::string& body, Extent blocks, Extent threads) {
  MachineOptions options;
  options.counts = testing::TempDir() + "ptx_counts_" + std::to_string(::getpid());
  {
    Lab lab(options);
    const auto fault = lab.run(kernel_text(parameters, body), blocks, threads, lab.make<std::uint32_t>(128));
    EXPECT_FALSE(fault) << fault->text;
  }
  std::string line;
  std::getline(std::ifstream(options.counts), line);
  std::remove(options.counts.c_str());
  return line;
}

// Two blocks of two warps. Each warp stores to 128 bytes and loads one word in all threads.
TEST(PtxResidency, CountsWhatLaunchesExecute) {
  const std::string line =
      counts_of(".param .u64 words",
                "mov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\nld.param.u64 %d1, [words];\n"
                "mad.wide.u32 %d1, %r2, 256, %d1;\nmad.wide.u32 %d2, %r1, 4, %d1;\nst.global.u32 [%d2], %r1;\n"
                "fence.acq_rel.gpu;\nfence.acq_rel.sys;\nbar.sync 0;\nld.global.u32 %r3, [%d1];\n"
                "setp.eq.u32 %p1, %r1, 0;\n@%p1 st.release.sys.global.u32 [%d1+128], %r1;",
                {2, 1, 1}, {64, 1, 1});
  // Device 0, 2 blocks, 4 warps with 13 instructions, no polling, a barrier per block; a fence per warp and a release
  // per block; sectors loaded and stored; bytes loaded and stored.
  EXPECT_EQ(line, "k\t0\t2\t52\t0\t2\t6\t4\t18\t512\t520");
}

// Two rounds of a loop, of which the first polls unless it stores.
TEST(PtxResidency, CountsPolling) {
  const auto twice = [&](const char* between) {
    return counts_of(".param .u64 words",
                     "ld.param.u64 %d1, [words];\nmov.u32 %r1, 0;\nA:\nld.relaxed.sys.global.u32 %r2, [%d1];" +
                         std::string(between) + "\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 2;\n@%p1 bra A;",
                     {1, 1, 1}, {1, 1, 1});
  };
  EXPECT_EQ(twice(""), "k\t0\t1\t11\t4\t0\t0\t2\t0\t8\t0");
  EXPECT_EQ(twice("\nst.global.u32 [%d1+4], %r1;"), "k\t0\t1\t13\t0\t0\t0\t2\t2\t8\t8");
}

}  // namespace
}  // namespace tutti::ptx
