// Races between operations (launches and copies) that vector clocks order or not, whatever their order in time.
#include <gtest/gtest.h>

#include "src/base/atomic.h"
#include "tests/ptx/lab.h"

namespace tutti::ptx {
namespace {

OperationClock clock(std::vector<std::uint32_t> counts) {
  return std::make_shared<const std::vector<std::uint32_t>>(std::move(counts));
}

// The first operation of chain 0, and the first of chain 1, which the other precedes or not.
OperationOrder first() { return {nullptr, 0, 1}; }
OperationOrder second(bool ordered) { return {ordered ? clock({1}) : nullptr, 1, 1}; }

// Kernels with the parameter `words`, which is %d1; thread 0 executes `body`.
struct OrderedLab : Lab {
  std::optional<Fault> run_kernel(const std::string& body, const OperationOrder& place) {
    return wait(start_kernel(body, place));
  }
  int start_kernel(const std::string& body, const OperationOrder& place) {
    order = place;
    return start(load(kernel_text(".param .u64 words", "ld.param.u64 %d1, [words];\n" + body)), {}, {}, words);
  }
  std::optional<Fault> run_copy(CopyLaunch copy, const OperationOrder& place) {
    copy.order = place;
    return wait(start(copy));
  }
  CopyLaunch fill(std::size_t word, std::size_t bytes) const {
    return {.to = reinterpret_cast<std::byte*>(words + word), .bytes = bytes, .value = 1};
  }
  CopyLaunch copy_from(std::size_t word, std::size_t bytes) {
    return {.to = reinterpret_cast<std::byte*>(target),
            .from = reinterpret_cast<const std::byte*>(words + word),
            .bytes = bytes};
  }

  static constexpr std::size_t kPageBytes = 4096;  // A page of records.
  static constexpr std::size_t kWords = 4096;      // Several pages.
  std::uint32_t* const words = make<std::uint32_t>(kWords);
  std::uint32_t* const target = make<std::uint32_t>(64);
};

constexpr const char* kStore = "st.global.u32 [%d1], 7;\n";
constexpr const char* kLoad = "ld.global.u32 %r1, [%d1];\n";

bool is_race(const std::optional<Fault>& fault) { return fault && fault->kind == FaultKind::race; }

TEST(PtxOrder, FindsRace_WhenEndedKernelIsNotOrderedBefore) {
  for (const bool ordered : {false, true}) {
    OrderedLab lab;
    EXPECT_FALSE(lab.run_kernel(kStore, first()));
    EXPECT_EQ(is_race(lab.run_kernel(kLoad, second(ordered))), !ordered);
  }
}

// A kernel acquires the zero of a fill, after another kernel has released its store elsewhere. Returns whether that is
// a race: the zero of a fill carries the fill only, and a zero of the host also what the host knows.
bool races_after_fill(std::uint32_t fills_before, bool filled, std::uint32_t fills_after) {
  OrderedLab lab;
  std::uint32_t others = 0;
  const auto fill_others = [&](std::uint32_t count) {
    while (count-- > 0) {
      CopyLaunch other = lab.fill(256, 1);
      other.to += ++others;
      other.order = OperationOrder{nullptr, 3, others};
      EXPECT_FALSE(lab.wait(lab.start(other)));
    }
  };
  fill_others(fills_before);
  CopyLaunch zeros = lab.fill(0, 256);
  zeros.value = 0;
  if (filled) {
    EXPECT_FALSE(lab.run_copy(zeros, first()));
  }
  fill_others(fills_after);
  const int reader = lab.start_kernel(
      "LOOP:\nld.relaxed.sys.global.u32 %r1, [%d1+64];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra LOOP;\n"
      "ld.acquire.sys.global.u32 %r2, [%d1+128];\nld.global.u32 %r3, [%d1];\n",
      second(filled));
  EXPECT_FALSE(lab.run_kernel(std::string(kStore) + "st.release.sys.global.u32 [%d1+192], 1;\n"
                                                    "st.relaxed.sys.global.u32 [%d1+64], 1;\n",
                              {filled ? clock({1}) : nullptr, 2, 1}));
  return is_race(lab.wait(reader));
}

TEST(PtxOrder, FindsRace_WhenAcquiredWordWasFilled) {
  EXPECT_FALSE(races_after_fill(0, false, 0));
  EXPECT_TRUE(races_after_fill(0, true, 0));
  EXPECT_TRUE(races_after_fill(5000, true, 0)) << "after more fills than the machine remembers";
}

// The machine remembers the last 4096 fills.
TEST(PtxOrder, AcquiredWordOfForgottenFillCountsAsStoredByHost) {
  EXPECT_TRUE(races_after_fill(0, true, 4095));
  EXPECT_FALSE(races_after_fill(0, true, 4096));
}

// The flag's memory is registered again between a release and the acquire of its value, which then carries no order.
TEST(PtxOrder, FindsRace_WhenAcquiredWordWasRegisteredAgain) {
  for (const bool again : {false, true}) {
    OrderedLab lab;
    auto* const flag = lab.make<std::uint32_t>(1);
    const auto run = [&](const std::string& body, const OperationOrder& place) {
      lab.order = place;
      return lab.run(kernel_text(".param .u64 words, .param .u64 flag",
                                 "ld.param.u64 %d1, [words];\nld.param.u64 %d2, [flag];\n" + body),
                     {}, {}, lab.words, flag);
    };
    EXPECT_FALSE(run(std::string(kStore) + "st.release.gpu.u32 [%d2], 1;\n", first()));
    auto* const begin = reinterpret_cast<std::byte*>(flag);
    const auto range = lab.space.find(begin);
    if (again) {
      ASSERT_TRUE(lab.space.remove(begin).ok() && lab.space.add(*range).ok());
    }
    EXPECT_EQ(is_race(run("ld.acquire.gpu.u32 %r2, [%d2];\n" + std::string(kLoad), second(false))), again);
  }
}

TEST(PtxOrder, FindsRace_BetweenFillAndKernel) {
  for (const bool ordered : {false, true}) {
    OrderedLab lab;
    EXPECT_FALSE(lab.run_copy(lab.fill(0, 4), first()));
    const auto fault = lab.run_kernel(kLoad, second(ordered));
    EXPECT_EQ(is_race(fault), !ordered);
    const std::string text = fault ? fault->text : "";
    EXPECT_EQ(text.find("a memset of 4 bytes on device 0 weakly writes it") != std::string::npos, !ordered) << text;
    EXPECT_EQ(lab.words[0], 0x01010101U);
  }
}

TEST(PtxOrder, FindsRace_AfterFillOfPages) {
  for (const bool ordered : {false, true}) {
    OrderedLab lab;
    EXPECT_FALSE(lab.run_copy(lab.fill(0, lab.kWords * sizeof(std::uint32_t)), first()));
    const auto fault = lab.run_kernel("ld.global.u32 %r1, [%d1 + 8192];\n", second(ordered));
    EXPECT_EQ(is_race(fault), !ordered);
  }
  OrderedLab lab;
  const std::size_t page = -reinterpret_cast<std::uintptr_t>(lab.words) % lab.kPageBytes / sizeof(std::uint32_t);
  const CopyLaunch whole_page = lab.fill(page, lab.kPageBytes);
  EXPECT_FALSE(lab.run_copy(whole_page, first()));
  EXPECT_TRUE(is_race(lab.run_copy(whole_page, second(false)))) << "a second fill";
}

TEST(PtxOrder, FindsRace_BetweenKernelAndCopy) {
  for (const bool ordered : {false, true}) {
    OrderedLab lab;
    EXPECT_FALSE(lab.run_kernel(kStore, first()));
    const auto fault = lab.run_copy(lab.copy_from(0, 256), second(ordered));
    EXPECT_EQ(is_race(fault), !ordered);
    EXPECT_EQ(lab.target[0], ordered ? 7U : 0U) << "a faulty copy changes nothing";
    const std::string text = fault ? fault->text : "";
    EXPECT_EQ(text.find("a copy of 256 bytes on device 0 weakly reads") != std::string::npos, !ordered) << text;
  }
}

TEST(PtxOrder, FindsNoRace_BetweenReadsAndDifferentBytes) {
  OrderedLab lab;
  EXPECT_FALSE(lab.run_copy(lab.copy_from(0, 4), first()));
  EXPECT_FALSE(lab.run_kernel(kLoad, second(false)));
  EXPECT_FALSE(lab.run_copy(lab.fill(1, 4), {nullptr, 2, 1})) << "the neighbour in 8 bytes";
  EXPECT_EQ(is_race(lab.run_copy(lab.fill(0, 1), {nullptr, 3, 1})), true);
}

// Chain 1 writes a word after its copy, or before it. The kernel acquires the word.
TEST(PtxOrder, OrdersWordOfStreamAfterEarlierCopies) {
  for (const bool early : {true, false}) {
    OrderedLab lab;
    CopyLaunch word = lab.fill(16, 4);
    word.writes_word = true;
    word.word = 5;
    const int kernel = lab.start_kernel(
        "AGAIN:\nld.acquire.sys.u32 %r2, [%d1+64];\nsetp.ne.u32 %p1, %r2, 5;\n@%p1 bra AGAIN;\n" + std::string(kLoad),
        {nullptr, 0, 1});
    const OperationOrder begin = {nullptr, 1, 1}, end = {clock({0, 1}), 1, 2};
    if (early) {
      EXPECT_FALSE(lab.run_copy(lab.fill(0, 4), begin));
    }
    EXPECT_FALSE(lab.run_copy(word, early ? end : begin));
    const bool race = !early && is_race(lab.run_copy(lab.fill(0, 4), end));
    EXPECT_EQ(is_race(lab.wait(kernel)) || race, !early);
  }
}

// The host stores the word that the kernel acquires, after it has waited for the fill or not.
TEST(PtxOrder, OrdersWordOfHostAfterOperationsThatHostAwaited) {
  for (const bool waits : {false, true}) {
    OrderedLab lab;
    const int kernel = lab.start_kernel(
        "AGAIN:\nld.acquire.sys.u32 %r2, [%d1+64];\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra AGAIN;\n" + std::string(kLoad),
        first());
    EXPECT_FALSE(lab.run_copy(lab.fill(0, 4), second(false)));
    if (waits) lab.machine->observe(clock({0, 1}));
    store_release(lab.words + 16, 1U);
    EXPECT_EQ(is_race(lab.wait(kernel)), !waits);
  }
}

TEST(PtxOrder, CancelsClaimedCopy) {
  OrderedLab lab;
  CopyLaunch copy = lab.fill(0, 4);
  copy.claimed = std::make_shared<std::atomic<bool>>(true);
  copy.order = first();
  lab.start(copy);
  EXPECT_FALSE(lab.run_copy(lab.fill(1, 4), second(false)));
  EXPECT_EQ(lab.words[0], 0U);
}

}  // namespace
}  // namespace tutti::ptx
