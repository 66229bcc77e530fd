// Sizes of strong accesses: elements of vectors are accesses of their own.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/ptx/litmus.h"

namespace tutti::ptx {
namespace {

TEST(PtxVectors, FindsRace_BetweenStrongAccessesOfDifferentSizes) {
  const auto races = [](const std::string& look) {
    return run({"mov.u32 %r5, 1;\nst.relaxed.sys.v2.u32 [%d1], {%r5, %r5};", "AGAIN:\n" + look + "@%p2 bra AGAIN;",
                true},
               20)
        .races;
  };
  EXPECT_EQ(races("ld.relaxed.sys.u32 %r11, [%d1+4];\nsetp.eq.u32 %p2, %r11, 0;\n"), 0U);
  EXPECT_EQ(races("ld.relaxed.sys.u64 %d5, [%d1];\nsetp.eq.u64 %p2, %d5, 0;\n"), 20U);
  Lab lab;
  auto* const words = lab.make<std::uint32_t>(2);
  const auto fault =
      lab.run(kernel_text(".param .u64 words",
                          "ld.param.u64 %d1, [words];\nmov.u32 %r5, %ctaid.x;\nsetp.eq.u32 %p1, %r5, 0;\n"
                          "@%p1 bra STORE;\nAGAIN:\nld.relaxed.sys.u32 %r6, [%d1+4];\n"
                          "setp.eq.u32 %p2, %r6, 0;\n@%p2 bra AGAIN;\nld.relaxed.sys.u16 %h1, [%d1+6];\n"
                          "bra END;\nSTORE:\nmov.u32 %r5, 1;\nst.relaxed.sys.v2.u32 [%d1], {%r5, %r5};\nEND:"),
              {2, 1, 1}, {}, words);
  ASSERT_TRUE(fault);
  char address[32];
  std::snprintf(address, sizeof address, "0x%llx", reinterpret_cast<unsigned long long>(words) + 6);
  EXPECT_NE(fault->text.find(std::string(" strongly reads ") + address + " (2 bytes) at"), std::string::npos)
      << fault->text;
  EXPECT_NE(fault->text.find(" strongly writes it (4 bytes) at"), std::string::npos) << fault->text;
  // A later store of the other size does not hide the first one.
  const std::string both =
      "mov.u32 %r5, 1;\nmov.u64 %d5, 1;\nst.relaxed.sys.u32 [%d1], %r5;\nst.relaxed.sys.u64 [%d1], %d5;";
  const std::string look = "AGAIN:\nld.relaxed.sys.u64 %d5, [%d1];\nsetp.eq.u64 %p2, %d5, 0;\n@%p2 bra AGAIN;";
  EXPECT_EQ(run({both, look, true}, 20).races, 20U);
}

// The reader acquires one element of a vector, or of 16 bytes, after it has seen its value.
TEST(PtxVectors, PassesMessage_ByElementOfVector) {
  const auto races = [](const std::string& post, const std::string& look) {
    return run({store("weak", "%d1", 1) + "mov.u32 %r5, 0;\nmov.u32 %r6, 1;\nmov.u64 %d5, 1;\nmov.u64 %d6, 1;\n" + post,
                "AGAIN:\n" + look + "setp.eq.u32 %p2, %r10, 0;\n@%p2 bra AGAIN;\n" + load("weak", "%r11", "%d1"), true},
               20)
        .races;
  };
  const std::string words = ".v4.u32 [%d2], {%r5, %r5, %r6, %r6};\n";
  for (const std::string scope : {"gpu", "sys"}) {
    for (const int offset : {8, 12}) {
      const std::string fence = "fence.acq_rel." + scope + ";\n", word = "[%d2+" + std::to_string(offset) + "];\n";
      const std::string acquire = "ld.acquire." + scope + ".u32 %r10, " + word;
      const std::string relaxed = "ld.relaxed." + scope + ".u32 %r10, " + word;
      EXPECT_EQ(races("st.release." + scope + words, acquire), 0U);
      EXPECT_EQ(races(fence + "st.relaxed." + scope + words, acquire), 0U);
      EXPECT_EQ(races(fence + "st.volatile" + words, relaxed + fence), 0U);
      EXPECT_EQ(races("st.relaxed." + scope + words, acquire), 20U);
      EXPECT_EQ(races("st.release." + scope + words, relaxed), 20U);
      EXPECT_EQ(races("st.release.cta" + words, acquire), 20U);
    }
  }
  const std::string fence = "fence.acq_rel.sys;\n";
  const std::string vector = ".v4.u32 {%r12, %r13, %r14, %r10}, [%d2];\n";
  EXPECT_EQ(races("st.release.sys" + words, "ld.acquire.sys" + vector), 0U);
  EXPECT_EQ(races("st.release.sys" + words, "ld.relaxed.sys" + vector + fence), 0U);
  EXPECT_EQ(races("st.release.sys" + words, "ld.relaxed.sys" + vector), 20U);
  EXPECT_EQ(races("st.release.sys.u32 [%d2+12], %r6;\n", "ld.acquire.sys" + vector), 0U);
  // The host could know the release of another word, but the element is not the host's.
  const std::string poll = "ld.relaxed.sys.u32 %r10, [%d2+12];\nsetp.eq.u32 %p3, %r10, 0;\n@%p3 bra AGAIN;\n";
  EXPECT_EQ(
      races("st.release.sys.u32 [%d2+32], 1;\nst.relaxed.sys" + words, poll + "ld.acquire.sys.u32 %r10, [%d2+12];\n"),
      20U);
  const std::string half = "ld.acquire.sys.u64 %d7, [%d2+8];\ncvt.u32.u64 %r10, %d7;\n";
  EXPECT_EQ(races("st.release.sys.v2.u64 [%d2], {%d5, %d6};\n", half), 0U);
  EXPECT_EQ(races("st.relaxed.sys.v2.u64 [%d2], {%d5, %d6};\n", half), 20U);
}

// Thread 32 acquires one element of a vector in shared memory.
TEST(PtxVectors, PassesMessage_ByElementOfVectorInSharedMemory) {
  const auto races = [](const std::string& post) {
    Lab lab;
    const std::string vector = ".shared.v4.u32 [flags], {%r5, %r5, %r5, %r6};\n";
    const auto fault = lab.run(
        kernel_text(".param .u64 words",
                    ".shared .align 16 .b8 flags[16];\nld.param.u64 %d1, [words];\nmov.u32 %r1, %tid.x;\n"
                    "mov.u32 %r5, 0;\nmov.u32 %r6, 0;\nsetp.ne.u32 %p1, %r1, 0;\nsetp.ne.u32 %p2, %r1, 32;\n@!%p1 st" +
                        vector + "bar.sync 0;\n@%p1 bra READ;\nmov.u32 %r6, 1;\nst.global.u32 [%d1], 1;\n" + post +
                        vector +
                        "bra END;\nREAD:\n@%p2 bra END;\nAGAIN:\nld.acquire.cta.shared.u32 %r10, [flags+12];\n" +
                        "setp.eq.u32 %p3, %r10, 0;\n@%p3 bra AGAIN;\nld.global.u32 %r11, [%d1];\nEND:"),
        {}, {64, 1, 1}, lab.make<std::uint32_t>(1));
    EXPECT_TRUE(!fault || fault->kind == FaultKind::race) << fault->text;
    return fault.has_value();
  };
  EXPECT_FALSE(races("st.release.cta"));
  EXPECT_TRUE(races("st.relaxed.cta"));
}

}  // namespace
}  // namespace tutti::ptx
