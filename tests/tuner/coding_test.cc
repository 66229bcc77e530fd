// Cost of encoding and decoding in the plans of all ranks, and choices with compression.
#include "src/tuner/coding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "src/plan/fuse.h"
#include "src/tuner/candidates.h"
#include "tests/algorithms/cases.h"
#include "tests/tuner/queries.h"

namespace tutti::test {
namespace {

using test::query;

// Counts like CompressedFold, for the rank with the most work.
CodecWork counted(const Plan& plan) {
  CodecWork work;
  const RoundedStores rounded_stores = rounded_stores_of(plan.problem.collective);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step step = plan.steps[i];
    double length = 0, sources = 0, received = 0, sent = 0, stored = 0;
    for (const Operand& source : step.sources) {
      if (source.space == Space::flag) continue;
      length = static_cast<double>(source.count) / plan.shape.units;
      sources += 1;
      received += source.space == Space::lane ? 1 : 0;
    }
    for (const Operand& target : step.targets) {
      sent += target.space == Space::lane ? 1 : 0;
      stored += target.is_memory() ? 1 : 0;
    }
    const bool passes_on = sources == 1 && received == 1;
    if (passes_on) {
      work.decoded += stored * length;
      continue;
    }
    const bool kept = stored > 0 && (rounded_stores == RoundedStores::sums     ? step.fold == Fold::complete
                                     : rounded_stores == RoundedStores::copies ? received == 0
                                                                               : false);
    work.decoded += (received + (kept ? 1 : 0)) * length;
    work.encoded += sent > 0 || kept ? length : 0;
  }
  return work;
}

// Encoding and decoding together, within a third.
TEST(CompressionCost, MatchesPlans) {
  std::size_t known = 0;
  for (const cases::Entry& entry : cases::all_entries()) {
    for (const std::vector<Rank>& hosts : {std::vector<Rank>{2}, {3}, {4}, {5}, {8}, {16}, {4, 4}, {2, 2, 2}}) {
      Problem problem{
          .collective = entry.collective, .ranks = std::accumulate(hosts.begin(), hosts.end(), Rank{0}), .groups = {}};
      if (hosts.size() > 1) problem.groups = {hosts};
      const Algorithm& algorithm = *entry.algorithm;
      const bool mapped = accesses_peers(algorithm.name());
      if (mapped || !algorithm.supports(problem) || !algorithm.supports_compression(problem)) continue;
      SCOPED_TRACE(cases::title(entry) + " of " + describe(problem));
      std::vector<Plan> plans = emit_plans(algorithm, problem);
      for (Plan& plan : plans) fuse(plan);
      fuse_stages(plans);
      double max = 0;
      for (const Plan& plan : plans) {
        const CodecWork work = counted(plan);
        max = std::max(max, work.encoded + work.decoded);
      }
      const CodecWork predicted = codec_work(problem, algorithm.cost_law(problem));
      EXPECT_NEAR(predicted.encoded + predicted.decoded, max, max / 3);
      ++known;
    }
  }
  EXPECT_GT(known, 100U);
}

// Returns hosts with one rank each, and a link between them.
Machine linked(double gbits_per_s) {
  Machine machine = machine_of_hosts();
  machine.levels[1].member_gbytes_per_s = gbits_per_s / 8;
  return machine;
}

Query bounded(Rank ranks, std::uint64_t bytes, double bound) {
  Query requested = query(Collective::all_reduce, ranks, bytes);
  requested.max_relative_error = bound;
  return requested;
}

TEST(ErrorBound, LeavesMessagesUncompressed_InSharedMemory) {
  for (const std::uint64_t bytes : {64ULL, 4096ULL, 1ULL << 16, 1ULL << 20, 1ULL << 24, 1ULL << 28}) {
    for (const double bound : {0.003, 0.01, 0.1, 0.9})
      EXPECT_EQ(choose(bounded(2, bytes, bound)).value().compression, CompressionFormat::none) << bytes << " " << bound;
  }
}

TEST(ErrorBound, ChoosesFormatWithinIt_OverSlowLink) {
  const Machine slow = linked(1);
  const auto taken = [&](Rank ranks, double bound, std::uint64_t bytes = 16 << 20) {
    Query requested = bounded(ranks, bytes, bound);
    requested.network = true;
    requested.machine = &slow;
    return choose(requested).value();
  };
  for (const Rank ranks : {2U, 3U, 4U, 8U, 16U, 32U}) {
    EXPECT_EQ(taken(ranks, 0.01).compression, CompressionFormat::int8)
        << ranks;  // With any number of ranks, by two-shot.
    EXPECT_EQ(taken(ranks, 0.0025).compression, CompressionFormat::bf16) << ranks;
    EXPECT_EQ(taken(ranks, 0.5).compression, CompressionFormat::int6) << ranks;  // int4 is used only on request.
    EXPECT_EQ(taken(ranks, 0.001).compression, CompressionFormat::none) << ranks;
  }
  EXPECT_EQ(taken(2, 0.01, 64).compression, CompressionFormat::none);  // A group has 130 bytes.
  EXPECT_EQ(taken(2, 1e-9).compression, CompressionFormat::none);
}

// Only algorithms within the bound are chosen with each format; a ring rounds once per hop.
TEST(ErrorBound, AllowsRings_WhenTheirErrorFits) {
  const Machine slow = linked(1);
  for (const Rank ranks : {2U, 4U, 16U, 64U}) {
    for (const double bound : {0.003, 0.01, 0.03, 0.2}) {
      Query requested = bounded(ranks, 1 << 24, bound);
      requested.network = true;
      requested.machine = &slow;
      bool ring = false;
      const std::vector<Candidate> found = candidates(requested).value();
      for (const Candidate& one : found) {
        const CostLaw cost_law = find(Collective::all_reduce, one.choice.algorithm)->cost_law(requested.problem);
        EXPECT_LE(expected_error(one.choice.compression, cost_law), bound) << one.choice.algorithm;
        ring |= one.choice.algorithm == "ring" && one.choice.compression == CompressionFormat::int8;
      }
      const double of_ring = compression_error(CompressionFormat::int8) * std::sqrt((ranks + 1) / 2.0);
      if (of_ring < 0.9 * bound || of_ring > bound) {
        EXPECT_EQ(ring, of_ring < bound) << ranks << " " << bound;
      }
    }
  }
}

TEST(ErrorBound, LosesNoPrecision_ForSmallGain) {
  const Machine machine = linked(10);
  std::size_t rounded = 0, held_back = 0;
  for (double bytes = 512; bytes < 1 << 22; bytes *= 1.1) {
    Query requested = bounded(4, static_cast<std::uint64_t>(bytes) / 4 * 4, 0.01);
    requested.network = true;
    requested.machine = &machine;
    const std::vector<Candidate> found = candidates(requested).value();
    const auto min = [&](bool raw) {
      double us = 1e9;
      for (const Candidate& one : found)
        if ((one.choice.compression == CompressionFormat::none) == raw) us = std::min(us, one.predicted_us);
      return us;
    };
    const bool rounds = found.front().choice.compression != CompressionFormat::none;
    EXPECT_EQ(rounds, 1.1 * min(false) < min(true)) << bytes;
    rounded += rounds ? 1 : 0;
    held_back += !rounds && min(false) < min(true) ? 1 : 0;
  }
  EXPECT_GT(rounded, 10U);
  EXPECT_GT(held_back, 0U);
}

// 16-bit tensors gain half as much, and messages of equal size nothing.
TEST(ErrorBound, DependsOnElementSize) {
  const Machine slow = linked(1);
  Query requested = bounded(4, 1 << 24, 0.0025);
  requested.network = true;
  requested.machine = &slow;
  requested.type = DataType::bfloat16;
  EXPECT_EQ(choose(requested).value().compression, CompressionFormat::none);
  requested.max_relative_error = 0.01;
  EXPECT_EQ(choose(requested).value().compression, CompressionFormat::int8);
}

// A forced algorithm stays; if it does not support compression, the call is uncompressed.
TEST(ErrorBound, AppliesForcedOptions) {
  const Machine slow = linked(1);
  for (const auto& [algorithm, compression] : {std::pair("ring", CompressionFormat::none),
                                               {"two_shot", CompressionFormat::int8},
                                               {"recursive_doubling", CompressionFormat::none}}) {
    Query requested = bounded(16, 1 << 24, 0.01);
    requested.network = true;
    requested.machine = &slow;
    requested.algorithm = algorithm;
    const Choice choice = choose(requested).value();
    EXPECT_EQ(choice.algorithm, algorithm);
    if (std::string_view(algorithm) != "ring") {
      EXPECT_EQ(choice.compression, compression) << algorithm;
    } else {
      EXPECT_EQ(choice.compression, CompressionFormat::bf16);  // Only this format allows its eight roundings.
    }
  }
}

// Encoding takes time of the busiest rank, and compressed messages take less time on the link.
TEST(Predictions, IncludeCostOfCompression) {
  Query requested = query(Collective::all_reduce, 2, 1 << 24);
  const Candidate raw = candidates(requested).value().front();
  requested.compression = CompressionFormat::int8;
  const Candidate rounded = candidates(requested).value().front();
  EXPECT_EQ(rounded.choice.compression, CompressionFormat::int8);
  EXPECT_GT(rounded.parts.work_us, 1.1 * raw.parts.work_us);
  requested.type = DataType::bfloat16;  // Twice the elements, and each is converted to float32 first.
  EXPECT_GT(candidates(requested).value().front().parts.work_us, 1.9 * rounded.parts.work_us);
  requested.type = DataType::float32;
  const Machine slow = linked(1);
  requested.network = true;
  requested.machine = &slow;
  const double links_us = candidates(requested).value().front().parts.links_us;
  requested.compression = CompressionFormat::none;
  EXPECT_NEAR(candidates(requested).value().front().parts.links_us / links_us, 512.0 / 130, 0.01);
}

}  // namespace
}  // namespace tutti::test
