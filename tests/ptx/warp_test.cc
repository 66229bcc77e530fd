// Barriers and exchanges between threads.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/base/case_sampling.h"
#include "tests/ptx/lab.h"

namespace tutti::ptx {
namespace {

// Runs `body`, which computes %r2 from the thread's index %r1, and returns %r2 of all threads.
std::vector<std::uint32_t> compute(const std::string& body, std::uint32_t threads = 64, std::uint64_t seed = 1,
                                   const std::string& before = "") {
  MachineOptions options;
  options.seed = seed;
  Lab lab(options);
  auto* const out = lab.make<std::uint32_t>(threads);
  const auto fault =
      lab.run(kernel_text(".param .u64 out",
                          "mov.u32 %r1, %tid.x;\n" + body +
                              "\nld.param.u64 %d1, [out];\nmad.wide.u32 %d2, %r1, 4, %d1;\nst.global.u32 [%d2], %r2;",
                          before),
              {}, {threads, 1, 1}, out);
  EXPECT_FALSE(fault) << fault->text;
  return {out, out + threads};
}

TEST(PtxWarp, Shuffles) {
  const auto flipped = compute("shfl.sync.bfly.b32 %r2, %r1, 5, 31, -1;");
  const auto shifted = compute("shfl.sync.up.b32 %r2|%p1, %r1, 3, 0, -1;\n@!%p1 mov.u32 %r2, 99;");
  const auto down = compute("shfl.sync.down.b32 %r2, %r1, 2, 0x181f, -1;");
  for (std::uint32_t i = 0; i < 64; ++i) {
    EXPECT_EQ(flipped[i], i ^ 5);
    EXPECT_EQ(shifted[i], i % 32 < 3 ? 99 : i - 3);
    EXPECT_EQ(down[i], i % 8 < 6 ? i + 2 : i);
  }
}

TEST(PtxWarp, Votes) {
  const auto any = compute("setp.eq.u32 %p1, %r1, 40;\nvote.sync.any.pred %p2, %p1, -1;\nselp.u32 %r2, 1, 0, %p2;");
  const auto all = compute("setp.ne.u32 %p1, %r1, 40;\nvote.sync.all.pred %p2, %p1, -1;\nselp.u32 %r2, 1, 0, %p2;");
  const auto ballot = compute("setp.lt.u32 %p1, %r1, 4;\nvote.sync.ballot.b32 %r2, !%p1, -1;");
  for (std::uint32_t i = 0; i < 64; ++i) {
    EXPECT_EQ(any[i], i / 32);
    EXPECT_EQ(all[i], 1 - i / 32);
    EXPECT_EQ(ballot[i], i < 32 ? 0xfffffff0U : ~0U);
  }
}

TEST(PtxWarp, ReducesAndMatches) {
  const auto max = compute("xor.b32 %r3, %r1, 21;\nredux.sync.max.u32 %r2, %r3, -1;");
  const auto same = compute("and.b32 %r3, %r1, 3;\nmatch.any.sync.b32 %r2, %r3, -1;");
  for (std::uint32_t i = 0; i < 64; ++i) {
    EXPECT_EQ(max[i], i < 32 ? 31 : 63);
    EXPECT_EQ(same[i], 0x11111111U << i % 4);
  }
}

// Groups of 8 threads with masks of their own, which arrive in pieces.
TEST(PtxWarp, JoinsThreadsOfMask_WhenTheyDiverge) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto sums = compute(
        "and.b32 %r3, %r1, 24;\nshl.b32 %r4, 255, %r3;\nand.b32 %r5, %r1, 3;\nmov.u32 %r6, 0;\n"
        "AGAIN:\nadd.s32 %r6, %r6, 1;\nsetp.le.u32 %p1, %r6, %r5;\n@%p1 bra AGAIN;\n"
        "redux.sync.add.s32 %r2, %r6, %r4;",
        64, seed);
    for (const std::uint32_t sum : sums) EXPECT_EQ(sum, 20U);
  }
}

TEST(PtxWarp, ReducesInBlock) {
  const auto any = compute("setp.eq.u32 %p1, %r1, 200;\nbar.red.or.pred %p2, 0, %p1;\nselp.u32 %r2, 1, 0, %p2;", 256);
  const auto all = compute("setp.eq.u32 %p1, %r1, 200;\nbar.red.and.pred %p2, 0, !%p1;\nselp.u32 %r2, 1, 0, %p2;", 256);
  const auto count = compute("setp.lt.u32 %p1, %r1, 77;\nbar.red.popc.u32 %r2, 0, %p1;", 256);
  EXPECT_EQ(std::count(any.begin(), any.end(), 1), 256);
  EXPECT_EQ(std::count(all.begin(), all.end(), 0), 256);
  EXPECT_EQ(std::count(count.begin(), count.end(), 77), 256);
}

constexpr const char* kTable = ".shared .align 4 .b8 table[1024];\n";
const std::string kExchange =
    "mov.u32 %r3, table;\nmad.lo.s32 %r4, %r1, 4, %r3;\nst.shared.u32 [%r4], %r1;\nBARRIER\nxor.b32 %r5, %r1, WITH;\n"
    "mad.lo.s32 %r6, %r5, 4, %r3;\nld.shared.u32 %r2, [%r6];";

std::string exchange(const std::string& barrier, const std::string& with) {
  std::string text = kExchange;
  text.replace(text.find("BARRIER"), 7, barrier);
  return text.replace(text.find("WITH"), 4, with);
}

std::optional<Fault> fault_of(const std::string& body, std::uint64_t seed = 1) {
  MachineOptions options;
  options.seed = seed;
  Lab lab(options);
  return lab.run(kernel_text("", "mov.u32 %r1, %tid.x;\n" + body, kTable), {}, {128, 1, 1});
}

TEST(PtxWarp, OrdersSharedMemoryByBarrier) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto got = compute(exchange("bar.sync 0;", "100"), 128, seed, kTable);
    for (std::uint32_t i = 0; i < 128; ++i) EXPECT_EQ(got[i], i ^ 100);
  }
  EXPECT_FALSE(fault_of(exchange("bar.warp.sync -1;", "7")));
  EXPECT_FALSE(fault_of(
      exchange("setp.lt.u32 %p1, %r1, 64;\n@%p1 bra A;\nbar.sync 2, 64;\nbra B;\nA:\nbar.sync 1, 64;\nB:", "40")));
}

// Threads below 64 arrive at a barrier for which the others wait.
TEST(PtxWarp, OrdersOnlyWaitingThreads_WhenOthersArrive) {
  const std::string begin =
      "mov.u32 %r3, table;\nmad.lo.s32 %r4, %r1, 4, %r3;\nxor.b32 %r5, %r4, 256;\n"
      "st.shared.u32 [%r4], %r1;\nbar.sync 0;\n";
  const std::string store = "st.shared.u32 [%r4], %r1;\n", load = "ld.shared.u32 %r2, [%r5];\n";
  const std::string arrive = "bar.arrive 1, 128;\n", wait = "bar.sync 1, 128;\n";
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto fault = [&](const std::string& arriving, const std::string& waiting) {
      return fault_of(
          begin + "setp.lt.u32 %p1, %r1, 64;\n@%p1 bra ARRIVE;\n" + waiting + "bra END;\nARRIVE:\n" + arriving + "END:",
          seed);
    };
    EXPECT_FALSE(fault(store + arrive, wait + load));
    for (const auto& race : {fault(arrive + load, store + wait), fault(arrive + store, wait + load),
                             fault(store + arrive + store, wait + load)}) {
      ASSERT_TRUE(race) << "seed " << seed;
      EXPECT_EQ(race->kind, FaultKind::race) << race->text;
    }
  }
}

// A barrier shows stores to the thread block while other blocks do not see them yet.
TEST(PtxWarp, ShowsStoresToBlockAtBarrier) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    MachineOptions options;
    options.seed = seed;
    Lab lab(options);
    auto* const words = lab.make<std::uint16_t>(128);
    auto* const out = lab.make<std::uint16_t>(128);
    const auto fault =
        lab.run(kernel_text(".param .u64 words, .param .u64 out",
                            "mov.u32 %r1, %tid.x;\nld.param.u64 %d1, [words];\nld.param.u64 %d2, [out];\nmad.wide.u32 "
                            "%d3, %r1, 2, %d1;\n"
                            "cvt.u16.u32 %h1, %r1;\nst.global.u16 [%d3], %h1;\nbar.sync 0;\nxor.b32 %r2, %r1, 101;\n"
                            "mad.wide.u32 %d4, %r2, 2, %d1;\nld.global.u16 %h2, [%d4];\nmad.wide.u32 %d5, %r1, 2, "
                            "%d2;\nst.global.u16 [%d5], %h2;"),
                {}, {128, 1, 1}, words, out);
    ASSERT_FALSE(fault) << fault->text;
    for (std::uint32_t i = 0; i < 128; ++i) ASSERT_EQ(out[i], i ^ 101);
  }
}

// A barrier of a warp shows stores in global memory to its threads.
TEST(PtxWarp, ShowsStoresToWarpAtWarpBarrier) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    MachineOptions options;
    options.seed = seed;
    Lab lab(options);
    auto* const words = lab.make<std::uint16_t>(32);
    auto* const out = lab.make<std::uint16_t>(32);
    const auto fault = lab.run(
        kernel_text(".param .u64 words, .param .u64 out",
                    "mov.u32 %r1, %tid.x;\nld.param.u64 %d1, [words];\nld.param.u64 %d2, [out];\nmad.wide.u32 "
                    "%d3, %r1, 2, %d1;\n"
                    "cvt.u16.u32 %h1, %r1;\nst.global.u16 [%d3], %h1;\nbar.warp.sync -1;\nxor.b32 %r2, %r1, 21;\n"
                    "mad.wide.u32 %d4, %r2, 2, %d1;\nld.global.u16 %h2, [%d4];\nmad.wide.u32 %d5, %r1, 2, "
                    "%d2;\nst.global.u16 [%d5], %h2;"),
        {}, {32, 1, 1}, words, out);
    ASSERT_FALSE(fault) << fault->text;
    for (std::uint32_t i = 0; i < 32; ++i) ASSERT_EQ(out[i], i ^ 21);
  }
}

TEST(PtxWarp, FindsRaceInSharedMemory_WithoutBarrier) {
  for (const auto& [barrier, with] :
       {std::pair("", "100"), std::pair("bar.warp.sync -1;", "100"), std::pair("", "7"),
        std::pair("setp.lt.u32 %p1, %r1, 64;\n@%p1 bra A;\nbar.sync 2, 64;\nbra B;\nA:\nbar.sync 1, 64;\nB:", "100")}) {
    const auto fault = fault_of(exchange(barrier, with));
    ASSERT_TRUE(fault) << barrier << " " << with;
    EXPECT_TRUE(fault->kind == FaultKind::race || fault->kind == FaultKind::uninitialised) << fault->text;
  }
}

TEST(PtxWarp, FindsRaceInSharedMemory_AfterBarrier) {
  const auto fault =
      fault_of(exchange("bar.sync 0;", "100") + "\nst.shared.u32 [%r6], %r1;\nld.shared.u32 %r2, [%r4];");
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::race) << fault->text;
}

// Threads of one warp wait for each other: independent scheduling.
TEST(PtxWarp, LetsThreadsOfWarpWaitForEachOther) {
  for (std::uint64_t seed = 1; seed <= (test::kSlowMotion ? 4 : 20); ++seed) {
    MachineOptions options;
    options.seed = seed;
    options.deadlock_ms = 20'000;
    Lab lab(options);
    auto* const word = lab.make<std::uint32_t>(1);
    const auto fault = lab.run(
        kernel_text(
            ".param .u64 out",
            "ld.param.u64 %d1, [out];\nmov.u32 %r1, %tid.x;\nAGAIN:\n"
            "ld.relaxed.gpu.u32 %r2, [%d1];\nsetp.ne.u32 %p1, %r2, %r1;\n@%p1 bra AGAIN;\nadd.s32 %r3, %r1, 1;\n"
            "st.relaxed.gpu.u32 [%d1], %r3;"),
        {}, {32, 1, 1}, word);
    ASSERT_FALSE(fault) << fault->text;
    EXPECT_EQ(*word, 32U);
  }
}

TEST(PtxWarp, CountsWithAtomics) {
  Lab lab;
  auto* const words = lab.make<std::uint32_t>(64);
  const auto fault =
      lab.run(kernel_text(".param .u64 out",
                          "ld.param.u64 %d1, [out];\nmov.u32 %r1, %tid.x;\natom.add.u32 %r2, [%d1], 1;\n"
                          "red.global.max.s32 [%d1+64], %r1;\natom.global.cas.b32 %r3, [%d1+128], 0, 7;\n"
                          "red.relaxed.gpu.global.add.f32 [%d1+192], 0f3F000000;"),
              {40, 1, 1}, {96, 1, 1}, words);
  ASSERT_FALSE(fault) << fault->text;
  EXPECT_EQ(words[0], 40 * 96U);
  EXPECT_EQ(words[16], 95U);
  EXPECT_EQ(words[32], 7U);
  EXPECT_EQ(reinterpret_cast<float*>(words)[48], 20 * 96.0F);
}

}  // namespace
}  // namespace tutti::ptx
