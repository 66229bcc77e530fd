// Litmus tests of three and four thread blocks, and of atomics: orders that pass through a third thread.
#include <gtest/gtest.h>

#include <set>

#include "tests/ptx/litmus.h"

namespace tutti::ptx {
namespace {

MachineOptions options_with(std::uint64_t seed, bool detects_races) {
  MachineOptions options;
  options.seed = seed;
  options.detects_races = detects_races;
  return options;
}

// Whether one of many runs has these results, in the order of the blocks. 9: not set.
bool appears(const Results& wanted, const std::vector<std::string>& blocks) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    if (run_blocks(blocks, options_with(seed, false)) == wanted) return true;
  }
  return false;
}

struct Seen {
  std::set<Results> results;
  int races = 0;
};

Seen find_races(const std::vector<std::string>& blocks) {
  Seen seen;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    if (const auto results = run_blocks(blocks, options_with(seed, true))) {
      seen.results.insert(*results);
    } else {
      ++seen.races;
    }
  }
  return seen;
}

// Loads `word` into %r10 until it has the value.
std::string wait_for(const std::string& how, const std::string& word, int value) {
  return "AGAIN$:\n" + load(how, "%r10", word) + "setp.ne.u32 %p2, %r10, " + std::to_string(value) +
         ";\n@%p2 bra AGAIN$;\n";
}

// Independent reads of independent writes: two blocks store, two read the words in opposite orders. Returns whether the
// readers disagree about the order of the stores.
bool readers_disagree(const std::string& look, const std::string& middle) {
  const auto read = [&](const std::string& first, const std::string& second) {
    return load(look, "%r10", first) + middle + load("relaxed.gpu", "%r11", second);
  };
  return appears({9, 9, 9, 9, 1, 0, 1, 0}, {store("relaxed.gpu", "%d1", 1), store("relaxed.gpu", "%d2", 1),
                                            read("%d1", "%d2"), read("%d2", "%d1")});
}

TEST(PtxCausality, LetsReadersDisagree_WithoutSequentialFence) {
  EXPECT_TRUE(readers_disagree("relaxed.gpu", ""));
  EXPECT_TRUE(readers_disagree("acquire.gpu", ""));
  EXPECT_TRUE(readers_disagree("relaxed.gpu", "fence.acq_rel.gpu;\n"));
  EXPECT_FALSE(readers_disagree("relaxed.gpu", "fence.sc.gpu;\n"));
}

// Write-to-read causality: block 0 stores x, block 1 reads x and then stores y, block 2 reads y and then x. Returns
// whether block 2 reads the old x although block 1 read the new one before it stored the y that block 2 read.
bool loses_cause(const std::string& look, const std::string& post, const std::string& follow) {
  return appears({9, 9, 1, 9, 1, 0}, {store("relaxed.gpu", "%d1", 1), load(look, "%r10", "%d1") + store(post, "%d2", 1),
                                      load(follow, "%r10", "%d2") + load("relaxed.gpu", "%r11", "%d1")});
}

TEST(PtxCausality, PassesWhatThirdBlockRead) {
  EXPECT_FALSE(loses_cause("relaxed.gpu", "release.gpu", "acquire.gpu"));
  EXPECT_FALSE(loses_cause("acquire.gpu", "release.gpu", "acquire.gpu"));
  EXPECT_TRUE(loses_cause("acquire.gpu", "relaxed.gpu", "acquire.gpu"));
  EXPECT_TRUE(loses_cause("acquire.gpu", "release.gpu", "relaxed.gpu"));
}

// Block 0 stores data and x, block 1 waits for x and stores y, block 2 waits for y and reads the data.
Seen relay(const std::string& post, const std::string& look) {
  return find_races({store("weak", "%d1+32", 5) + store("release.gpu", "%d1", 1),
                     wait_for(look, "%d1", 1) + store(post, "%d2", 1),
                     wait_for("acquire.gpu", "%d2", 1) + load("weak", "%r11", "%d1+32")});
}

TEST(PtxCausality, PassesDataThroughThirdBlock) {
  const Seen whole = relay("release.gpu", "acquire.gpu");
  EXPECT_EQ(whole.races, 0);
  EXPECT_EQ(whole.results, std::set<Results>({{9, 9, 1, 9, 1, 5}}));
  EXPECT_EQ(relay("relaxed.gpu", "acquire.gpu").races, 20);
  EXPECT_EQ(relay("release.gpu", "relaxed.gpu").races, 20);
}

// Block 0 stores data and changes y from 0 to 1 by `head`, block 1 changes it to 2 by `link`, and block 2, which
// acquires the 2, reads the data.
Seen chain(const std::string& head, const std::string& link) {
  return find_races(
      {store("weak", "%d1", 5) + head, wait_for("relaxed.gpu", "%d2", 1) + link,
       wait_for("relaxed.gpu", "%d2", 2) + load("acquire.gpu", "%r10", "%d2") + load("weak", "%r11", "%d1")});
}

TEST(PtxCausality, ContinuesReleaseThroughAtomics) {
  const std::string add = "atom.relaxed.gpu.global.add.u32 %r11, [%d2], 1;\n";
  const std::string exchange = "atom.relaxed.gpu.global.cas.b32 %r11, [%d2], 1, 2;\n";
  const std::string release = "atom.release.gpu.global.add.u32 %r11, [%d2], 1;\n";
  for (const std::string& head : {store("release.gpu", "%d2", 1), release}) {
    for (const std::string& link : {add, exchange, std::string("red.relaxed.gpu.global.add.u32 [%d2], 1;\n")}) {
      const std::uint32_t before_head = head == release ? 0 : 9, before_link = link.starts_with("atom") ? 1 : 9;
      const Seen seen = chain(head, link);
      EXPECT_EQ(seen.races, 0) << head << link;
      EXPECT_EQ(seen.results, std::set<Results>({{9, before_head, 1, before_link, 2, 5}})) << head << link;
    }
  }
  EXPECT_EQ(chain(release, store("relaxed.gpu", "%d2", 2)).races, 20);  // A store ends the release sequence.
  EXPECT_EQ(chain(add, add).races, 20);
}

// Three blocks change a word 64 times each.
TEST(PtxCausality, LosesNoUpdate) {
  const std::string add = "atom.relaxed.gpu.global.add.u32 %r10, [%d1], 1;\n";
  const std::string compare =
      "AGAIN$:\nld.relaxed.gpu.u32 %r10, [%d1];\nadd.u32 %r12, %r10, 1;\n"
      "atom.relaxed.gpu.global.cas.b32 %r13, [%d1], %r10, %r12;\nsetp.ne.u32 %p2, %r13, %r10;\n@%p2 bra AGAIN$;\n";
  for (const std::string& change : {add, compare}) {
    const std::string body =
        "mov.u32 %r20, 0;\nLOOP$:\n" + change + "add.u32 %r20, %r20, 1;\nsetp.lt.u32 %p3, %r20, 64;\n@%p3 bra LOOP$;\n";
    bool mixed = false;
    for (const Results& each : find_races({body, body, body}).results) {
      const std::set<std::uint32_t> last = {each[0], each[2], each[4]};  // Values before the last updates.
      EXPECT_EQ(last.size(), 3U) << change;
      EXPECT_EQ(*last.rbegin(), 191U) << change;
      mixed = mixed || *last.begin() > 64;
    }
    EXPECT_TRUE(mixed) << change;
  }
}

}  // namespace
}  // namespace tutti::ptx
