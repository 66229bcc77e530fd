// Outcomes that the memory model allows appear over many seeds; those that it forbids never appear.
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <thread>

#include "src/base/atomic.h"
#include "tests/ptx/litmus.h"

namespace tutti::ptx {
namespace {

// Message passing: first writes x, then the flag y; second reads y into %r10, then x into %r11.
Litmus message(const std::string& data, const std::string& post, const std::string& look,
               const std::string& middle = "") {
  return {store(data, "%d1", 1) + middle + store(post, "%d2", 1),
          load(look, "%r10", "%d2") + load(data, "%r11", "%d1")};
}

TEST(PtxLitmus, PassesMessage_WithReleaseAndAcquire) {
  const Outcomes outcomes = run(message("relaxed.gpu", "release.gpu", "acquire.gpu"));
  EXPECT_FALSE(outcomes.contain(1, 0));
  EXPECT_TRUE(outcomes.contain(1, 1));
  EXPECT_TRUE(outcomes.contain(0, 0));
}

TEST(PtxLitmus, LosesMessage_WithoutRelease) {
  EXPECT_TRUE(run(message("relaxed.gpu", "relaxed.gpu", "acquire.gpu")).contain(1, 0));
}

// Only by late stores.
TEST(PtxLitmus, LosesMessage_WithoutRelease_WhenLoadsAreFresh) {
  Litmus litmus = message("relaxed.gpu", "relaxed.gpu", "acquire.gpu");
  litmus.loads_stale = false;
  EXPECT_TRUE(run(litmus).contain(1, 0));
}

TEST(PtxLitmus, LosesMessage_WithoutAcquire) {
  EXPECT_TRUE(run(message("relaxed.gpu", "release.gpu", "relaxed.gpu")).contain(1, 0));
}

TEST(PtxLitmus, PassesMessage_WithFences) {
  Litmus litmus = message("relaxed.gpu", "relaxed.gpu", "relaxed.gpu", "fence.acq_rel.gpu;\n");
  EXPECT_TRUE(run(litmus).contain(1, 0));
  litmus.second = load("relaxed.gpu", "%r10", "%d2") + "fence.acq_rel.gpu;\n" + load("relaxed.gpu", "%r11", "%d1");
  EXPECT_FALSE(run(litmus).contain(1, 0));
}

// Both store and then load the other's word.
Litmus store_buffering(const std::string& fence) {
  return {store("relaxed.sys", "%d1", 1) + fence + load("relaxed.sys", "%r10", "%d2"),
          store("relaxed.sys", "%d2", 1) + fence + load("relaxed.sys", "%r11", "%d1")};
}

TEST(PtxLitmus, ReadsOldValues_WithoutFence) {
  const auto both_old = [](const std::string& fence) {
    const std::string body = store_buffering(fence).first;
    Outcomes outcomes = run(store_buffering(fence));
    return outcomes.contain(0, 0);
  };
  EXPECT_TRUE(both_old(""));
  EXPECT_TRUE(both_old("fence.acq_rel.sys;\n"));
  EXPECT_FALSE(both_old("fence.sc.sys;\n"));
  EXPECT_FALSE(both_old("membar.sys;\n"));
}

TEST(PtxLitmus, KeepsOrderOfOneWord) {
  Litmus litmus = {store("relaxed.gpu", "%d1", 1) + store("relaxed.gpu", "%d1", 2),
                   load("relaxed.gpu", "%r10", "%d1") + load("relaxed.gpu", "%r11", "%d1")};
  const Outcomes outcomes = run(litmus);
  EXPECT_FALSE(outcomes.contain(2, 1));
  EXPECT_FALSE(outcomes.contain(2, 0));
  EXPECT_FALSE(outcomes.contain(1, 0));
  EXPECT_TRUE(outcomes.contain(0, 1) || outcomes.contain(0, 2) || outcomes.contain(1, 2));
}

TEST(PtxLitmus, ReadsItsOwnStores) {
  const Outcomes outcomes = run({store("weak", "%d1", 5) + load("weak", "%r10", "%d1"), ""}, 50);
  EXPECT_EQ(outcomes.seen.size(), 1U);
  EXPECT_TRUE(outcomes.contain(5, 9));
}

// Eight threads store a line of 128 bytes by one volatile access; its last word is the flag. The last thread of the
// other block waits for the flag by `look`. After a vote and `after`, all read the line. Returns whether one read an
// old word.
bool reads_old_line(const std::string& look, const std::string& after) {
  const std::string text = kernel_text(
      ".param .u64 words, .param .u64 out",
      "ld.param.u64 %d1, [words];\nld.param.u64 %d3, [out];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\n"
      "mad.wide.u32 %d2, %r1, 16, %d1;\nmad.wide.u32 %d4, %r1, 8, %d3;\nmov.u64 %d5, 1;\n"
      "setp.eq.u32 %p1, %r2, 1;\n@%p1 bra READ;\nst.volatile.global.v2.u64 [%d2], {%d5, %d5};\nbra END;\nREAD:\n"
      "setp.ne.u32 %p2, %r1, 7;\n@%p2 bra VOTE;\nAGAIN:\nld." +
          look + ".sys.u64 %d6, [%d1+120];\nsetp.eq.u64 %p3, %d6, 0;\n@%p3 bra AGAIN;\nVOTE:\n" +
          "vote.sync.all.pred %p4, %p1, 255;\n" + after +
          "\nld.volatile.global.v2.u64 {%d7, %d8}, [%d2];\nand.b64 %d7, %d7, %d8;\nst.global.u64 [%d4], %d7;\nEND:");
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    MachineOptions options;
    options.seed = seed;
    Lab lab(options);
    auto* const words = lab.make<std::uint64_t>(16);
    auto* const out = lab.make<std::uint64_t>(8);
    const auto fault = lab.run(text, {2, 1, 1}, {8, 1, 1}, words, out);
    EXPECT_FALSE(fault) << fault->text;
    for (int i = 0; i < 8; ++i) {
      if (out[i] != 1) return true;
    }
  }
  return false;
}

TEST(PtxLitmus, ReadsWholeLine_AfterAcquireOfItsFlag) {
  EXPECT_FALSE(reads_old_line("acquire", "bar.warp.sync 255;"));
  EXPECT_TRUE(reads_old_line("relaxed", "bar.warp.sync 255;"));
  EXPECT_TRUE(reads_old_line("acquire", ""));
}

// The reader waits for the flag, then reads the weak data.
Litmus wait_for(const std::string& post, const std::string& look) {
  return {store("weak", "%d1", 1) + store(post, "%d2", 1),
          "AGAIN:\n" + load(look, "%r10", "%d2") + "setp.eq.u32 %p2, %r10, 0;\n@%p2 bra AGAIN;\n" +
              load("weak", "%r11", "%d1"),
          true};
}

TEST(PtxLitmus, FindsNoRace_WithReleaseAndAcquire) {
  for (const char* const scope : {"gpu", "sys"}) {
    const Outcomes outcomes = run(wait_for(std::string("release.") + scope, std::string("acquire.") + scope), 100);
    EXPECT_EQ(outcomes.races, 0U);
    EXPECT_TRUE(outcomes.contain(1, 1));
    EXPECT_EQ(outcomes.seen.size(), 1U);
  }
}

TEST(PtxLitmus, FindsRace_WhenOneSideIsWeakened) {
  EXPECT_EQ(run(wait_for("relaxed.sys", "acquire.sys"), 50).races, 50U);
  EXPECT_EQ(run(wait_for("release.sys", "relaxed.sys"), 50).races, 50U);
  EXPECT_EQ(run(wait_for("release.cta", "acquire.cta"), 50).races, 50U);
}

// The reader loads the flag without order, and then executes fences.
TEST(PtxLitmus, FindsRace_WhenScopeOfAcquireFenceIsTooSmall) {
  const auto races = [](const std::string& fences) {
    Litmus litmus = wait_for("release.gpu", "relaxed.gpu");
    const std::size_t last = litmus.second.rfind("ld.");
    litmus.second.insert(last, fences);
    return run(litmus, 20).races;
  };
  EXPECT_EQ(races("fence.acq_rel.gpu;\n"), 0U);
  EXPECT_EQ(races("fence.acq_rel.cta;\n"), 20U);
  EXPECT_EQ(races("fence.acq_rel.cta;\nfence.acq_rel.gpu;\n"), 0U);
}

// One access is strong, and still a race.
TEST(PtxLitmus, FindsRace_BetweenWeakAndStrongAccesses) {
  Litmus litmus = {store("weak", "%d1", 1),
                   "AGAIN:\n" + load("relaxed.sys", "%r11", "%d1") + "setp.eq.u32 %p2, %r11, 0;\n@%p2 bra AGAIN;",
                   true};
  EXPECT_EQ(run(litmus, 20).races, 20U);
  litmus.first = store("relaxed.sys", "%d1", 1);
  EXPECT_EQ(run(litmus, 20).races, 0U);
}

// Kernels with the parameter `words` on the given devices: x is %d1, the flag y is %d2. All start before any continues.
bool races_between(const std::vector<std::pair<int, std::string>>& kernels) {
  Lab lab;
  auto* const words = lab.make<std::uint32_t>(32);
  std::vector<int> started;
  for (const auto& [device, body] : kernels) {
    const std::string begin =
        "ld.param.u64 %d1, [words];\nadd.s64 %d2, %d1, 64;\nGO:\nld.relaxed.sys.u32 %r20, [%d2+60];\n"
        "setp.eq.u32 %p5, %r20, 0;\n@%p5 bra GO;\n";
    started.push_back(lab.start(lab.load(kernel_text(".param .u64 words", begin + body), device), {}, {}, words));
  }
  store_release(words + 31, 1U);
  bool found = false;
  for (const int each : started) found = lab.wait(each).has_value() || found;
  return found;
}

TEST(PtxLitmus, FindsRace_WhenScopeIsOneDevice) {
  const auto races = [](const std::string& scope) {
    const Litmus litmus = wait_for("release." + scope, "acquire." + scope);
    return races_between({{0, litmus.first}, {1, litmus.second}});
  };
  EXPECT_FALSE(races("sys"));
  EXPECT_TRUE(races("gpu"));
}

// The end of a kernel does not widen the scope of its releases for a kernel of another device that runs already.
TEST(PtxLitmus, FindsRace_AfterReleaseOfOneDeviceByEndedKernel) {
  const auto races = [](const std::string& scope) {
    Lab lab;
    auto* const words = lab.make<std::uint32_t>(32);
    const std::string begin = "ld.param.u64 %d1, [words];\nadd.s64 %d2, %d1, 64;\n";
    const std::string look = "GO:\nld.relaxed.sys.u32 %r20, [%d2+60];\nsetp.eq.u32 %p5, %r20, 0;\n@%p5 bra GO;\n" +
                             load("acquire.sys", "%r10", "%d2") + load("weak", "%r11", "%d1");
    const int reader = lab.start(lab.load(kernel_text(".param .u64 words", begin + look), 1), {}, {}, words);
    const std::string post = store("weak", "%d1", 1) + store("release." + scope, "%d2", 1);
    EXPECT_FALSE(lab.run(kernel_text(".param .u64 words", begin + post), {}, {}, words));
    store_release(words + 31, 1U);
    return lab.wait(reader).has_value();
  };
  EXPECT_FALSE(races("sys"));
  EXPECT_TRUE(races("gpu"));
}

// The reader acquires a word of the host before and after it waits for the flag. The word does not change.
TEST(PtxLitmus, FindsRace_WhenOnlyUnchangedWordIsAcquired) {
  const auto races = [](const std::string& look) {
    const std::string word = load("acquire.sys", "%r12", "%d2+32");
    const std::string ready = store("relaxed.sys", "%d2+40", 1);
    const std::string wait = "AGAIN:\n" + load("relaxed.sys", "%r10", "%d2+40") +
                             "setp.eq.u32 %p2, %r10, 0;\n"
                             "@%p2 bra AGAIN;\n";
    const Litmus litmus = wait_for("release.sys", look);
    std::string reader = word + ready + litmus.second;
    reader.insert(reader.rfind("ld."), word);
    return races_between({{0, wait + litmus.first}, {0, reader}});
  };
  EXPECT_FALSE(races("acquire.sys"));
  EXPECT_TRUE(races("relaxed.sys"));
}

// The kernel sends a message, waits for an answer and copies it.
std::string talk(const std::string& release) {
  return kernel_text(".param .u64 words",
                     "ld.param.u64 %d1, [words];\nadd.s64 %d2, %d1, 64;\nst.global.u32 [%d1], 7;\n" +
                         store(release, "%d2", 1) +
                         "AGAIN:\nld.acquire.sys.u32 %r1, [%d2+64];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra AGAIN;\n"
                         "ld.global.u32 %r2, [%d2+128];\nst.global.u32 [%d1+4], %r2;");
}

void answer(std::uint32_t* words) {
  words[48] = 11;
  store_release(words + 32, 1U);
}

TEST(PtxLitmus, ExchangesMessagesWithHost) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    MachineOptions options;
    options.seed = seed;
    Lab lab(options);
    auto* const words = lab.make<std::uint32_t>(64);
    const int started = lab.start(lab.load(talk("release.sys")), {}, {}, words);
    while (load_acquire(words + 16) == 0) std::this_thread::yield();
    EXPECT_EQ(load_relaxed(words), 7U);
    answer(words);
    const auto fault = lab.wait(started);
    ASSERT_FALSE(fault) << fault->text;
    EXPECT_EQ(words[1], 11U);
  }
}

TEST(PtxLitmus, OrdersLaunchAfterReleaseThatHostSaw) {
  Lab lab;
  auto* const words = lab.make<std::uint32_t>(64);
  const int talks = lab.start(lab.load(talk("release.sys")), {}, {}, words);
  while (load_acquire(words + 16) == 0) std::this_thread::yield();
  const auto fault =
      lab.run(kernel_text(".param .u64 words",
                          "ld.param.u64 %d1, [words];\nld.global.u32 %r1, [%d1];\nst.global.u32 [%d1+8], %r1;"),
              {}, {}, words);
  EXPECT_FALSE(fault) << fault->text;
  EXPECT_EQ(words[2], 7U);
  answer(words);
  EXPECT_FALSE(lab.wait(talks));
}

TEST(PtxLitmus, OrdersAcquireAfterLaunchWhoseEndHostSaw) {
  Lab lab;
  auto* const words = lab.make<std::uint32_t>(64);
  const std::string begin = "ld.param.u64 %d1, [words];\n";
  const int waits = lab.start(
      lab.load(kernel_text(".param .u64 words",
                           begin + "AGAIN:\nld.acquire.sys.u32 %r1, [%d1+64];\nsetp.eq.u32 %p1, %r1, 0;\n"
                                   "@%p1 bra AGAIN;\nld.global.u32 %r2, [%d1];\nst.global.u32 [%d1+4], %r2;")),
      {}, {}, words);
  EXPECT_FALSE(lab.run(kernel_text(".param .u64 words", begin + "st.global.u32 [%d1], 5;"), {}, {}, words));
  store_release(words + 16, 1U);
  const auto fault = lab.wait(waits);
  EXPECT_FALSE(fault) << fault->text;
  EXPECT_EQ(words[1], 5U);
}

// The host reads memory between the slices of the machine: when kernels that do nothing end. The first of them and the
// writer start between two slices.
std::uint32_t count_lost_messages(const std::string& release, std::uint64_t seeds) {
  std::uint32_t lost = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    MachineOptions options;
    options.seed = seed;
    Lab lab(options);
    auto* const words = lab.make<std::uint32_t>(64);
    const auto nothing = lab.load(kernel_text("", "")), writer = lab.load(talk(release));
    int left = 40;
    std::function<void(const std::optional<Fault>&)> look = [&](const std::optional<Fault>&) {
      lost += load_acquire(words + 16) == 1 && load_relaxed(words) != 7;
      if (--left == 0) return answer(words);
      EXPECT_TRUE(lab.machine->start({nothing, "k", {}, {}, 0, {}, false}, look).ok());
    };
    std::promise<int> started;
    const auto begin = [&](const std::optional<Fault>&) {
      started.set_value(lab.start(writer, {}, {}, words));
      EXPECT_TRUE(lab.machine->start({nothing, "k", {}, {}, 0, {}, false}, look).ok());
    };
    EXPECT_TRUE(lab.machine->start({nothing, "k", {}, {}, 0, {}, false}, begin).ok());
    const auto fault = lab.wait(started.get_future().get());
    EXPECT_FALSE(fault) << fault->text;
  }
  return lost;
}

TEST(PtxLitmus, LosesMessageToHost_WithoutRelease) {
  EXPECT_EQ(count_lost_messages("release.sys", 30), 0U);
  EXPECT_GT(count_lost_messages("relaxed.sys", 30), 0U);
}

}  // namespace
}  // namespace tutti::ptx
