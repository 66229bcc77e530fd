// Mutants of programs with two thread blocks or with the warps of one: each has a fault that the program has not.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "tests/ptx/lab.h"

namespace tutti::ptx {
namespace {

struct MutantSample {
  std::string body;
  Extent grid, block;
};

// Thread block 0 executes `first`, thread block 1 `second` and then reads what the other stored.
MutantSample message_sample(const std::string& first, const std::string& second) {
  return {
      "ld.param.u64 %d1, [words];\nmov.u32 %r1, %ctaid.x;\nsetp.eq.u32 %p1, %r1, 1;\n@%p1 bra SECOND;\n"
      "st.global.u32 [%d1], 7;\n" +
          first + "\nbra END;\nSECOND:\n" + second +
          "\nsetp.eq.u32 %p2, %r2, 0;\n@%p2 bra SECOND;\nld.global.u32 %r3, [%d1];\nEND:",
      {2, 1, 1},
      {1, 1, 1}};
}

// Threads exchange words of shared memory.
MutantSample exchange_sample(const std::string& barrier) {
  return {"mov.u32 %r1, %tid.x;\nmov.u32 %r3, table;\nmad.lo.s32 %r4, %r1, 4, %r3;\nst.shared.u32 [%r4], %r1;\n" +
              barrier + "\nxor.b32 %r5, %r4, 40;\nld.shared.u32 %r2, [%r5];",
          {1, 1, 1},
          {64, 1, 1}};
}

// Returns the fault of a run, if any. Fails if the program cannot be parsed.
std::optional<Fault> run_mutated(const MutantSample& sample, const Mutation& mutation) {
  const std::string text = kernel_text(".param .u64 words", sample.body, ".shared .align 4 .b8 table[256];\n");
  auto program = Program::parse(text, "mutants.ptx", mutation);
  if (!program.ok()) throw std::runtime_error(std::move(program).status().message());
  Lab lab;
  auto* const words = lab.make<std::uint32_t>(32);
  const auto module = Module::load(program.value(), lab.space, 0);
  return lab.wait(lab.start(module.value(), sample.grid, sample.block, words));
}

FaultKind fault_of_mutant(const MutantSample& sample, int number) {
  const auto original = run_mutated(sample, {});
  EXPECT_FALSE(original) << original->text;
  const auto fault = run_mutated(sample, {"k#" + std::to_string(number), ""});
  return fault ? fault->kind : FaultKind::launch;
}

TEST(PtxMutants, WeakenReleaseAndAcquire) {
  const MutantSample words = message_sample("st.release.gpu.u32 [%d1+8], 1;", "ld.acquire.gpu.u32 %r2, [%d1+8];");
  EXPECT_EQ(fault_of_mutant(words, 0), FaultKind::race);
  EXPECT_EQ(fault_of_mutant(words, 1), FaultKind::race);
  const MutantSample atomics = message_sample("atom.acq_rel.gpu.global.exch.b32 %r2, [%d1+8], 1;",
                                              "atom.acq_rel.gpu.global.or.b32 %r2, [%d1+8], 0;");
  EXPECT_EQ(fault_of_mutant(atomics, 0), FaultKind::race);    // The first releases.
  EXPECT_EQ(fault_of_mutant(atomics, 1), FaultKind::launch);  // It need not acquire.
  EXPECT_EQ(fault_of_mutant(atomics, 3), FaultKind::race);
}

TEST(PtxMutants, RemoveFences) {
  const MutantSample fences = message_sample("fence.acq_rel.gpu;\nst.relaxed.gpu.u32 [%d1+8], 1;",
                                             "ld.relaxed.gpu.u32 %r2, [%d1+8];\nmembar.gl;");
  EXPECT_EQ(fault_of_mutant(fences, 0), FaultKind::race);
  EXPECT_EQ(fault_of_mutant(fences, 1), FaultKind::race);
  EXPECT_EQ(fault_of_mutant(fences, 2), FaultKind::launch);  // Becomes fence.acq_rel, which suffices.
}

TEST(PtxMutants, RemoveBarriers) {
  EXPECT_EQ(fault_of_mutant(exchange_sample("bar.sync 0;"), 0), FaultKind::race);
  EXPECT_EQ(fault_of_mutant(exchange_sample("bar.warp.sync -1;"), 0), FaultKind::race);
  EXPECT_EQ(
      fault_of_mutant(exchange_sample("setp.eq.u32 %p1, %r1, 64;\nbar.red.or.pred %p2, 0, !%p1;\n@!%p2 trap;"), 0),
      FaultKind::race);
}

TEST(PtxMutants, ChangeMasks) {
  EXPECT_EQ(fault_of_mutant(exchange_sample("bar.warp.sync -1;"), 1), FaultKind::mask);
  EXPECT_EQ(fault_of_mutant({"shfl.sync.bfly.b32 %r2|%p1, 1, 5, 31, -1;", {}, {32, 1, 1}}, 0), FaultKind::mask);
  EXPECT_EQ(fault_of_mutant({"mov.b32 %r4, -1;\nshfl.sync.bfly.b32 %r2|%p1, 1, 5, 31, %r4;", {}, {32, 1, 1}}, 0),
            FaultKind::mask);
  EXPECT_EQ(fault_of_mutant({"mov.b32 %r4, -1;\nbar.warp.sync %r4;", {}, {32, 1, 1}}, 1), FaultKind::mask);
  // Threads 0 to 7 vote; the others never do.
  const std::string part =
      "mov.u32 %r1, %tid.x;\nsetp.ge.u32 %p1, %r1, 8;\nmov.u32 %r4, 255;\n@%p1 bra WAIT;\n"
      "vote.sync.all.pred %p2, %p1, %r4;\nWAIT:\nbar.sync 0;";
  EXPECT_EQ(fault_of_mutant({part, {}, {32, 1, 1}}, 0), FaultKind::barrier);
}

TEST(PtxMutants, RejectUnknownNumber) {
  const MutantSample words = message_sample("st.release.gpu.u32 [%d1+8], 1;", "ld.acquire.gpu.u32 %r2, [%d1+8];");
  EXPECT_FALSE(run_mutated(words, {"other#7", ""}));  // The mutant is one of another program.
  for (const char* const mutant : {"k#2", "k#", "k#0x", "k#-1"})
    EXPECT_THROW(run_mutated(words, {mutant, ""}), std::runtime_error) << mutant;
}

TEST(PtxMutants, ListThoseThatExecute) {
  const std::string file = testing::TempDir() + "ptx_mutants_" + std::to_string(getpid());
  EXPECT_FALSE(run_mutated({"ld.param.u64 %d1, [words];\nst.release.gpu.u32 [%d1], 1;\nld.relaxed.gpu.u32 %r2, [%d1];\n"
                            "setp.eq.u32 %p1, %r2, 2;\n@%p1 bar.warp.sync -1;",
                            {},
                            {}},
                           {"", file}));
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  std::remove(file.c_str());
  EXPECT_TRUE(text.str().starts_with("mutant\tk#0\trelease\tPTX line ")) << text.str();
  EXPECT_NE(text.str().find("mutant\tk#2\tmask\t"), std::string::npos) << text.str();
  EXPECT_TRUE(text.str().ends_with("executed\tk#0\n")) << text.str();
}

}  // namespace
}  // namespace tutti::ptx
