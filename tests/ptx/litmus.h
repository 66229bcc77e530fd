// Litmus tests: two thread blocks, two words, and the results that they see over many seeds.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "tests/ptx/lab.h"

namespace tutti::ptx {

// Thread block 0 executes `first` and thread block 1 `second`, on words x (%d1) and y (%d2), 64 bytes apart. Each
// stores a result, %r10 and %r11, which begin as 9.
struct Litmus {
  std::string first, second;
  bool detects_races = false;
  bool loads_stale = true;
};

struct Outcomes {
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
  std::uint32_t races = 0;
  bool contain(std::uint32_t a, std::uint32_t b) const { return seen.contains({a, b}); }
};

inline Outcomes run(const Litmus& litmus, std::uint64_t seeds = 300) {
  const std::string text = kernel_text(
      ".param .u64 words, .param .u64 out",
      "ld.param.u64 %d1, [words];\nld.param.u64 %d3, [out];\nadd.s64 %d2, %d1, 64;\nmov.u32 %r1, %ctaid.x;\n"
      "mov.u32 %r10, 9;\nmov.u32 %r11, 9;\nsetp.eq.u32 %p1, %r1, 1;\n@%p1 bra SECOND;\n" +
          litmus.first + "\nbra END;\nSECOND:\n" + litmus.second +
          "\nEND:\nmad.wide.u32 %d4, %r1, 8, %d3;\nst.global.v2.u32 [%d4], {%r10, %r11};");
  Outcomes outcomes;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    MachineOptions options;
    options.seed = seed;
    options.detects_races = litmus.detects_races;
    options.loads_stale = litmus.loads_stale;
    Lab lab(options);
    auto* const words = lab.make<std::uint32_t>(32);
    auto* const out = lab.make<std::uint32_t>(4);
    const auto fault = lab.run(text, {2, 1, 1}, {}, words, out);
    if (fault) {
      EXPECT_EQ(fault->kind, FaultKind::race) << fault->text;
      ++outcomes.races;
      continue;
    }
    outcomes.seen.emplace(out[0] == 9 ? out[2] : out[0], out[3]);
  }
  return outcomes;
}

inline std::string store(const std::string& how, const std::string& word, int value) {
  return "st." + how + ".u32 [" + word + "], " + std::to_string(value) + ";\n";
}
inline std::string load(const std::string& how, const std::string& to, const std::string& word) {
  return "ld." + how + ".u32 " + to + ", [" + word + "];\n";
}

}  // namespace tutti::ptx
