// Runs every algorithm with every type and reduction on thread blocks, and compares the bits of the results with those
// of a CPU that runs the same plan. Units do not depend on protocol, chunks or channels, so elements are folded in the
// same order.
#pragma once

#include "tests/executor/catalogue_calls.h"
#include "tests/executor/rank_harness.h"
#include "tests/executor/zeroed_memory.h"

namespace tutti::test {

// Reductions that copy a single source unchanged (plain), and others (scaling). Their plans have different layouts.
enum class Reductions : std::uint8_t { plain, scaling };

class Sweep : public CatalogueCalls {
 protected:
  // Seeds the generator differently for each algorithm, so that few shapes of each cover many shapes in total.
  void SetUp() override {
    std::uint64_t seed = kSeed;
    for (const char letter : cases::title(GetParam())) seed = seed * 31 + static_cast<unsigned char>(letter);
    random_.seed(seed);
    next_case_ = random_();
  }

  // Runs one of `share` cases, beginning at a random one. In a small sample, an odd `share` that is no multiple of 5
  // lets the cases differ in chunks, sizes of types and reductions.
  void sweep(Rank ranks, Engine& engine, std::uint32_t share) {
    const Rank root = has_root(GetParam().collective) ? static_cast<Rank>(random_() % ranks) : 0;
    if (!emit(ranks, root)) return;
    test_call_.engine = &engine;
    cpu_.engine = &on_cpu_;
    std::copy(std::begin(test_call_.plans), std::end(test_call_.plans), std::begin(cpu_.plans));
    for (const std::uint32_t chunks : {1U, 1U, 3U}) {
      ASSERT_NO_FATAL_FAILURE(choose_loop(chunks));
      for (const std::uint32_t bytes : {1U, 2U, 4U, 8U, 16U}) {
        for (const Reductions reductions : {Reductions::plain, Reductions::scaling}) {
          if (tasks(bytes, reductions).empty() || next_case_++ % share != 0) continue;
          ASSERT_NO_FATAL_FAILURE(run(bytes, reductions));
        }
      }
    }
  }

 private:
  // Engine that provides memory for the CPU's lanes and runs no thread blocks.
  class CpuEngine final : public Engine {
   public:
    std::pmr::memory_resource* memory() override { return std::pmr::get_default_resource(); }
    std::pmr::memory_resource* lanes() override { return &lanes_; }
    std::string run(const std::vector<std::vector<KernelCall>>&, std::uint32_t) override {
      return "no thread blocks here";
    }

   private:
    ZeroedMemory lanes_;
  };

  void choose_loop(std::uint32_t chunks) {
    test_call_.loop = reusing({.chunks = chunks, .skew = chunks > 1 ? 1U : 0U});
    test_call_.loop.slots = kMaxSlots / 2;
    const auto proof = verify(test_call_.plans[0], test_call_.loop);
    ASSERT_TRUE(proof.ok());
    ASSERT_TRUE(suffices(proof.value(), test_call_.loop));
    test_call_.loop.slots = std::bit_ceil(proof.value().slots);
  }

  // Returns a random number of elements that fit a slot of every protocol; few, so that tests are fast.
  std::uint64_t some_elements() {
    constexpr std::uint64_t kMax = 300;
    const std::uint64_t longest = longest_message(test_call_.plans[0]);
    if (longest == 0) return 1 + random_() % kMax;
    const std::uint64_t units = test_call_.plans[0][0].shape.units;
    const std::uint64_t slot = slot_elements(cpu_);
    const std::uint64_t room = std::max<std::uint64_t>(slot / longest / cpu_.granule, 1) * cpu_.granule;
    const std::uint64_t limit = test_call_.loop.chunks == 1 ? slot / longest * units : units * (2 * room + 1);
    const std::uint64_t count = 1 + random_() % std::min(limit, kMax);
    return per_host_ > 0 && random_() % 2 == 0 ? (count + units - 1) / units * units : count;  // Units of one length.
  }

  // Returns tasks with all types of this size and all reductions. Collectives that only move data have one task.
  std::vector<FoldTask> tasks(std::uint32_t bytes, Reductions reductions) const {
    const bool mapped = std::string_view(GetParam().algorithm->name()).ends_with("_mapped");
    std::vector<FoldTask> made;
    for (std::uint32_t t = 0; t < kDataTypes; ++t) {
      if (size_of(static_cast<DataType>(t)) != bytes) continue;
      for (std::uint32_t r = 0; r < kReductions; ++r) {
        const auto reduction = static_cast<Reduction>(r);
        const bool scales = reduction == Reduction::avg || reduction == Reduction::pre_mul_sum;
        if (!thread_block_supports(static_cast<DataType>(t), reduction)) continue;
        if (scales != (reductions == Reductions::scaling)) continue;
        if (mapped && reduction == Reduction::pre_mul_sum) continue;  // Ranks do not know the peers' factors.
        made.push_back({.type = static_cast<DataType>(t), .reduction = reduction});
      }
    }
    if (!reduces(GetParam().collective)) made.resize(reductions == Reductions::plain ? 1 : 0);
    return made;
  }

  void run(std::uint32_t bytes, Reductions reductions) {
    test_call_.tasks = tasks(bytes, reductions);
    test_call_.operations = static_cast<std::uint32_t>(test_call_.tasks.size());
    test_call_.element_bytes = cpu_.element_bytes = bytes;
    test_call_.granule = cpu_.granule = bytes > 8 ? kGranule / 2 : kGranule;  // So that the longest messages fit.
    test_call_.count = some_elements();
    cpu_.loop = test_call_.loop;
    cpu_.count = test_call_.count;
    cpu_.operations = test_call_.operations;
    cpu_.tasks = test_call_.tasks;
    const bool may_be_in_place = !test_call_.plans[1].empty();
    std::vector<bool> in_place;
    for (std::size_t rank = 0; rank < test_call_.plans[0].size(); ++rank)
      in_place.push_back(may_be_in_place && random_() % 2 == 0);
    RankSet wanted(cpu_, transport_, in_place);
    ASSERT_EQ(wanted.run_time_sliced(), "") << shape();
    for (const Protocol protocol : {Protocol::simple, Protocol::ll, Protocol::ll128}) {
      test_call_.protocol = protocol;
      test_call_.forms = random_() % 2 == 0 ? Forms::as_proved : Forms::one_way;
      test_call_.straight = random_() % 2 == 0;
      test_call_.channels = 1 + random_() % 2;
      RankSet rank_set(test_call_, transport_, in_place);
      ASSERT_EQ(test_call_.engine->run(rank_set.calls(), test_call_.channels), "") << shape();
      ASSERT_EQ(rank_set.differs_from(wanted), "") << shape();
    }
  }

  std::string shape() const {
    return describe(test_call_.plans[0][0].problem) + ", " + std::to_string(test_call_.count) + " elements of " +
           std::to_string(test_call_.element_bytes) + " bytes, " + std::to_string(test_call_.loop.chunks) +
           " pieces, protocol " + std::to_string(int(test_call_.protocol)) + ", forms " +
           std::to_string(int(test_call_.forms)) + (test_call_.straight ? ", straight, " : ", ") +
           std::to_string(test_call_.channels) + " channels, seed " + std::to_string(kSeed);
  }

  ShmTransport transport_{0};
  CpuEngine on_cpu_;
  TestCall cpu_;
  std::uint64_t next_case_ = 0;
};

}  // namespace tutti::test
