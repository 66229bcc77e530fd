#include <gtest/gtest.h>

#include <array>
#include <set>

#include "src/plan/fuse.h"
#include "src/plan/print.h"
#include "src/plan/verify.h"
#include "tests/plan/mutants.h"
#include "tests/plan/reference_interpreter.h"
#include "tests/plan/samples.h"

namespace tutti::test {
namespace {

using namespace samples;

constexpr std::uint32_t kMutantsWanted = 3000;
constexpr std::uint32_t kRejectedWithFault = 1000;  // Minimum number of rejected mutants, as a measure of the verifier.
constexpr std::uint32_t kRejectedWithoutFault = 30;  // Maximum number of correct mutants that the verifier may reject.
constexpr std::uint64_t kSchedules = 60;

const RingReduceScatter kRingReduceScatter;
const RingAllGather kRingAllGather;
const DirectReduceScatter kDirectReduceScatter;
const DirectAllGather kDirectAllGather;
const AllReduce kRing(kRingReduceScatter, kRingAllGather, 1);
const AllReduce kTwoShot(kDirectReduceScatter, kDirectAllGather, 1);

struct Subject {
  std::string name;
  std::vector<Plan> plans;
  Loop loop;
};

std::vector<Plan> fused(const Algorithm& algorithm, const Problem& problem, Across across) {
  std::vector<Plan> plans = emit_plans(algorithm, problem);
  for (Plan& plan : plans) fuse(plan, across);
  if (across == Across::rounds) fuse_stages(plans);
  return plans;
}

std::vector<Subject> subjects() {
  const auto all_reduce = [](Rank ranks, bool in_place = false) {
    return problem(Collective::all_reduce, ranks, in_place);
  };
  return {
      {"ring", emit_plans(kRing, all_reduce(4)), {}},
      {"ring in place, skewed", emit_plans(kRing, all_reduce(3, true)), {.chunks = 4, .skew = 1}},
      {"fused ring", fused(kRing, all_reduce(4), Across::stages), {}},
      {"two-shot", emit_plans(kTwoShot, all_reduce(3)), {}},
      {"fused two-shot, skewed", fused(kTwoShot, all_reduce(3), Across::rounds), {.chunks = 5, .skew = 1}},
      {"all-gather", emit_plans(kRingAllGather, problem(Collective::all_gather, 4, true)), {}},
      {"reduce-scatter", emit_plans(kDirectReduceScatter, problem(Collective::reduce_scatter, 4)), {}},
      {"tree", emit_plans(TreeBroadcast(), problem(Collective::broadcast, 6)), {.chunks = 2}},
      {"one-shot", emit_plans(OneShot(), all_reduce(3)), {}},
      {"mapped", emit_plans(MappedAllReduce(), all_reduce(3)), {}},
      {"staged", emit_plans(StagedAllReduce(), all_reduce(3)), {.chunks = 4, .skew = 1, .ring = 2}},
      {"mapped in place", emit_plans(MappedAllReduce(), all_reduce(3, true)), {.chunks = 2}},
  };
}

// Returns the first error of the reference interpreter in some schedule; empty if it fails in none.
std::string fault(std::span<const Plan> plans, Loop loop, std::uint32_t slots) {
  loop.slots = slots;
  for (std::uint64_t seed = 0; seed < kSchedules; ++seed) {
    const ReferenceResult result = run_reference(plans, loop, seed);
    if (!result.ok) return result.text;
  }
  return "";
}

std::string text_of(std::span<const Plan> plans) {
  std::string text;
  for (const Plan& plan : plans) text += print(plan);
  return text;
}

struct Tally {
  std::uint32_t accepted = 0, rejected = 0, rejected_without_fault = 0;
};

TEST(Mutation, OriginalsAreAcceptedByBoth) {
  for (const Subject& subject : subjects()) {
    SCOPED_TRACE(subject.name);
    const auto proof = verify(subject.plans, subject.loop);
    ASSERT_TRUE(proof.ok()) << verify(subject.plans, subject.loop).status().message();
    EXPECT_EQ(fault(subject.plans, subject.loop, proof.value().slots), "");
  }
}

// Defects of these kinds sometimes leave a correct plan: steps that do not interact, a copy made twice, a sum in
// another order.
constexpr Mutation kHarmlessAtTimes[] = {Mutation::swap_steps, Mutation::repeat_step, Mutation::swap_sources};

void expect_judgement(const std::array<Tally, kMutations>& tallies) {
  std::uint32_t with_fault = 0;
  std::uint32_t without_fault = 0;
  for (std::uint32_t i = 0; i < kMutations; ++i) {
    const Tally& tally = tallies[i];
    const char* kind = name(static_cast<Mutation>(i));
    std::printf("%-14s accepted %4u rejected %4u, of them without a fault seen %u\n", kind, tally.accepted,
                tally.rejected, tally.rejected_without_fault);
    EXPECT_GT(tally.rejected, tally.rejected_without_fault) << kind << ": no mutant of this kind was shown wrong";
    with_fault += tally.rejected - tally.rejected_without_fault;
    without_fault += tally.rejected_without_fault;
  }
  EXPECT_GE(with_fault, kRejectedWithFault);
  EXPECT_LE(without_fault, kRejectedWithoutFault);
  for (const Mutation kind : kHarmlessAtTimes) {
    EXPECT_GT(tallies[static_cast<std::uint32_t>(kind)].accepted, 0U) << name(kind) << ": all rejected";
  }
}

TEST(Mutation, VerifierRejectsWhateverReferenceRejects) {
  constexpr std::uint64_t seed = 20240607;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  const std::vector<Subject> all = subjects();
  std::set<std::string> seen;
  for (const Subject& subject : all) seen.insert(subject.name + text_of(subject.plans));
  std::array<Tally, kMutations> tallies;
  for (std::uint32_t made = 0; made < kMutantsWanted;) {
    const Subject& subject = all[random() % all.size()];
    const auto mutation = static_cast<Mutation>(random() % kMutations);
    const auto plans = mutant(subject.plans, mutation, random);
    if (!plans || !seen.insert(subject.name + text_of(*plans)).second) continue;
    ++made;
    Tally& tally = tallies[static_cast<std::uint32_t>(mutation)];
    auto proof = verify(*plans, subject.loop);
    const std::string trace = subject.name + ", " + name(mutation) + "\n";
    if (proof.ok()) {
      ++tally.accepted;
      EXPECT_EQ(fault(*plans, subject.loop, proof.value().slots), "") << trace << text_of(*plans);
      continue;
    }
    ++tally.rejected;
    const std::string violation = std::move(proof).status().message();
    EXPECT_TRUE(explains(mutation, violation)) << trace << violation << "\n" << text_of(*plans);
    if (fault(*plans, subject.loop, 8).empty()) {
      ++tally.rejected_without_fault;
      std::printf("no schedule shows it: %s: %s\n", trace.c_str(), violation.c_str());
    }
  }
  expect_judgement(tallies);
}

}  // namespace
}  // namespace tutti::test
