// Parsing, calls, vectors and variables.
#include <gtest/gtest.h>

#include "tests/ptx/lab.h"

namespace tutti::ptx {
namespace {

TEST(PtxProgram, NamesLineAndText_WhenInstructionIsUnknown) {
  auto program = Program::parse(kernel_text("", "mov.u32 %r1, 1;\nfrobnicate.b32 %r1, %r1;"), "kernel.ptx");
  ASSERT_FALSE(program.ok());
  const std::string message = std::move(program).status().message();
  EXPECT_NE(message.find("kernel.ptx:15"), std::string::npos) << message;
  EXPECT_NE(message.find("frobnicate.b32 %r1, %r1"), std::string::npos) << message;
}

TEST(PtxProgram, RejectsRegisterOfWrongWidth) {
  EXPECT_FALSE(Program::parse(kernel_text("", "add.s32 %r1, %d1, 1;"), "kernel.ptx").ok());
}

TEST(PtxProgram, DescribesKernel) {
  auto program = Program::parse(
      ".version 8.0 .target sm_90 .address_size 64 .shared .align 8 .b8 table[24]; .visible .entry "
      "k(.param .u32 a, .param .align 8 .b8 b[24]) .maxntid 96, 1, 1 { .reg .b32 %r<3>; "
      "mov.u32 %r1, table; ret; }",
      "collapsed");
  ASSERT_TRUE(program.ok()) << std::move(program).status().message();
  ASSERT_EQ(program.value()->kernels().size(), 1U);
  const KernelInfo& kernel = program.value()->kernels()[0];
  EXPECT_EQ(program.value()->target(), "sm_90");
  EXPECT_EQ(kernel.threads_per_block_max, 96U);
  EXPECT_EQ(kernel.shared_bytes, 24U);
  ASSERT_EQ(kernel.parameters.size(), 2U);
  EXPECT_EQ(kernel.parameters[1].offset, 8U);
  EXPECT_EQ(kernel.parameter_bytes, 32U);
}

TEST(PtxProgram, CallsFunctions) {
  const std::string function =
      ".func (.param .b32 result) twice(.param .b32 a, .param .align 8 .b8 pair[16]) {\n.reg .b32 %r<4>;\n.reg .b64 "
      "%d<3>;\n"
      "ld.param.u32 %r1, [a];\nmov.b64 %d1, pair;\nld.param.u64 %d2, [%d1+8];\ncvt.u32.u64 %r2, %d2;\n"
      "mad.lo.s32 %r3, %r1, 2, %r2;\nst.param.b32 [result], %r3;\nret;\n}\n";
  Lab lab;
  auto* const out = lab.make<std::uint32_t>(64);
  const auto fault =
      lab.run(kernel_text(".param .u64 out",
                          "mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 20;\nmov.u32 %r5, 7;\n@%p1 bra DONE;\n"
                          "{\n.param .b32 a;\nst.param.b32 [a], %r1;\n.param .align 8 .b8 pair[16];\n"
                          "st.param.b64 [pair], 0;\nst.param.b64 [pair+8], 5;\n.param .b32 back;\n"
                          "call.uni (back), twice, (a, pair);\nld.param.b32 %r5, [back];\n}\nDONE:\n"
                          "ld.param.u64 %d1, [out];\nmad.wide.u32 %d2, %r1, 4, %d1;\nst.global.u32 [%d2], %r5;",
                          function),
              {}, {64, 1, 1}, out);
  ASSERT_FALSE(fault) << fault->text;
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], i < 20 ? 7 : 2 * i + 5);
}

// Even threads are in one function and odd ones in another, at the same time.
TEST(PtxProgram, KeepsRegistersOfFunctionsApart_WhenThreadsDiverge) {
  const std::string functions =
      ".func (.param .b64 result) wide(.param .b64 flags) {\n.reg .b32 %r<3>;\n.reg .b64 %d<3>;\n.reg .pred %p<2>;\n"
      "ld.param.u64 %d1, [flags];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %d2, %r1, 3;\n"
      "st.relaxed.gpu.global.u32 [%d1], 1;\n"
      "AGAIN:\nld.relaxed.gpu.global.u32 %r2, [%d1+4];\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra AGAIN;\n"
      "st.param.b64 [result], %d2;\nret;\n}\n"
      ".func (.param .b64 result) narrow(.param .b64 flags) {\n.reg .b32 %r<6>;\n.reg .b64 %d<3>;\n.reg .pred "
      "%p<2>;\nld.param.u64 %d1, [flags];\n"
      "AGAIN:\nld.relaxed.gpu.global.u32 %r1, [%d1];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra AGAIN;\n"
      "mov.u32 %r2, %tid.x;\nmov.u32 %r3, 5;\nmov.u32 %r4, 7;\nmad.lo.s32 %r5, %r2, %r3, %r4;\n"
      "st.relaxed.gpu.global.u32 [%d1+4], 1;\n"
      "cvt.u64.u32 %d2, %r5;\nst.param.b64 [result], %d2;\nret;\n}\n";
  const auto call = [](const std::string& function) {
    return "{\n.param .b64 flags;\nst.param.b64 [flags], %d1;\n.param .b64 back;\ncall.uni (back), " + function +
           ", (flags);\nld.param.b64 %d3, [back];\n}\n";
  };
  Lab lab;
  auto* const flags = lab.make<std::uint32_t>(2);
  auto* const out = lab.make<std::uint64_t>(32);
  const auto fault = lab.run(
      kernel_text(".param .u64 flags, .param .u64 out",
                  "ld.param.u64 %d1, [flags];\nmov.u32 %r1, %tid.x;\nand.b32 %r2, %r1, 1;\nsetp.eq.u32 %p1, %r2, 0;\n"
                  "@%p1 bra EVEN;\n" +
                      call("narrow") + "bra DONE;\nEVEN:\n" + call("wide") +
                      "DONE:\nld.param.u64 %d4, [out];\nmad.wide.u32 %d5, %r1, 8, %d4;\nst.global.u64 [%d5], %d3;",
                  functions),
      {}, {32, 1, 1}, flags, out);
  ASSERT_FALSE(fault) << fault->text;
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(out[i], i % 2 == 0 ? 3 * i : 5 * i + 7);
}

TEST(PtxProgram, AccessesVectorsAndPairs) {
  Lab lab;
  auto* const in = lab.make<std::uint64_t>(64);
  auto* const out = lab.make<std::uint64_t>(64);
  for (std::uint64_t i = 0; i < 64; ++i) in[i] = 0x1111111111111111U * (i % 16) + i;
  const auto fault = lab.run(
      kernel_text(".param .u64 in, .param .u64 out",
                  "mov.u32 %r1, %tid.x;\nld.param.u64 %d1, [in];\nld.param.u64 %d2, [out];\n"
                  "mad.wide.u32 %d3, %r1, 32, %d1;\nmad.wide.u32 %d4, %r1, 32, %d2;\n"
                  "ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%d3];\nst.global.v4.u32 [%d4], {%r2, %r3, %r4, %r5};\n"
                  "ld.relaxed.sys.b128 %q1, [%d3+16];\nmov.b128 {%d5, %d6}, %q1;\nmov.b128 %q2, {%d6, %d5};\n"
                  "st.relaxed.sys.b128 [%d4+16], %q2;"),
      {}, {16, 1, 1}, in, out);
  ASSERT_FALSE(fault) << fault->text;
  for (std::uint64_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], in[i % 4 < 2 ? i : i ^ 1]) << i;
}

TEST(PtxProgram, InitialisesVariablesOfEachDevice) {
  Lab lab;
  const std::string text =
      kernel_text(".param .u64 out",
                  "ld.param.u64 %d1, [out];\nld.global.u32 %r1, [table+4];\nst.global.u32 [%d1], %r1;\n"
                  "mov.u64 %d2, table;\nld.u32 %r2, [%d2+8];\nst.global.u32 [%d1+4], %r2;\nst.u32 [%d2+8], 99;",
                  ".global .align 4 .u32 table[3] = {5, 6, 7};\n");
  const auto first = lab.load(text, 0), second = lab.load(text, 1);
  for (const auto& module : {first, second}) {
    auto* const out = lab.make<std::uint32_t>(2, module->device());
    const auto fault = lab.wait(lab.start(module, {}, {}, out));
    ASSERT_FALSE(fault) << fault->text;
    EXPECT_EQ(out[0], 6U);
    EXPECT_EQ(out[1], 7U);
  }
  EXPECT_NE(first->find_variable("table"), second->find_variable("table"));
  EXPECT_EQ(reinterpret_cast<std::uint32_t*>(second->find_variable("table"))[2], 99U);
}

TEST(PtxProgram, KeepsLocalAndSharedMemoryApart) {
  Lab lab;
  auto* const out = lab.make<std::uint32_t>(96);
  const auto fault = lab.run(
      kernel_text(
          ".param .u64 out",
          ".local .align 8 .b8 depot[16];\nmov.u32 %r1, %tid.x;\nmov.u64 %d1, depot;\ncvta.local.u64 %d2, %d1;\n"
          "st.u32 [%d2+4], %r1;\nmov.u32 %r2, table;\nmad.lo.s32 %r3, %r1, 4, %r2;\nmul.lo.s32 %r4, %r1, 10;\n"
          "st.shared.u32 [%r3], %r4;\nbar.sync 0;\nxor.b32 %r5, %r1, 1;\nmad.lo.s32 %r6, %r5, 4, %r2;\n"
          "ld.shared.u32 %r7, [%r6];\nld.local.u32 %r8, [%d1+4];\nadd.s32 %r9, %r7, %r8;\n"
          "ld.param.u64 %d3, [out];\nmad.wide.u32 %d4, %r1, 4, %d3;\nst.global.u32 [%d4], %r9;",
          ".shared .align 4 .b8 table[384];\n"),
      {}, {96, 1, 1}, out);
  ASSERT_FALSE(fault) << fault->text;
  for (std::uint32_t i = 0; i < 96; ++i) EXPECT_EQ(out[i], (i ^ 1) * 10 + i);
}

}  // namespace
}  // namespace tutti::ptx
