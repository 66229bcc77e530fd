// Litmus tests: a few thread blocks, two words, and the results that they see over many seeds.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

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

// Two results of each thread block.
using Results = std::vector<std::uint32_t>;

// Runs one thread block for each text, like those of Litmus; `$` in labels becomes the number of the block. A race has
// no results.
inline std::optional<Results> run_blocks(const std::vector<std::string>& blocks, const MachineOptions& options) {
  std::string text =
      "ld.param.u64 %d1, [words];\nld.param.u64 %d3, [out];\nadd.s64 %d2, %d1, 64;\nmov.u32 %r1, %ctaid.x;\n"
      "mov.u32 %r10, 9;\nmov.u32 %r11, 9;\n";
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::string number = std::to_string(i);
    std::string block = "setp.ne.u32 %p1, %r1, " + number + ";\n@%p1 bra NEXT$;\n" + blocks[i] + "\nbra END;\nNEXT$:\n";
    for (std::size_t at = 0; (at = block.find('$', at)) != std::string::npos;) block.replace(at, 1, number);
    text += block;
  }
  text += "END:\nmad.wide.u32 %d4, %r1, 8, %d3;\nst.global.v2.u32 [%d4], {%r10, %r11};";
  Lab lab(options);
  auto* const words = lab.make<std::uint32_t>(32);
  auto* const out = lab.make<std::uint32_t>(2 * blocks.size());
  const auto fault = lab.run(kernel_text(".param .u64 words, .param .u64 out", text),
                             {static_cast<std::uint32_t>(blocks.size()), 1, 1}, {}, words, out);
  if (!fault) return Results(out, out + 2 * blocks.size());
  EXPECT_EQ(fault->kind, FaultKind::race) << fault->text;
  return std::nullopt;
}

inline Outcomes run(const Litmus& litmus, std::uint64_t seeds = 300) {
  Outcomes outcomes;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    MachineOptions options;
    options.seed = seed;
    options.detects_races = litmus.detects_races;
    options.loads_stale = litmus.loads_stale;
    const auto results = run_blocks({litmus.first, litmus.second}, options);
    if (!results) {
      ++outcomes.races;
      continue;
    }
    outcomes.seen.emplace((*results)[0] == 9 ? (*results)[2] : (*results)[0], (*results)[3]);
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
