// Autotuning of calls on memory that peers can map. Calls try mapped and other algorithms. All ranks switch at the same
// call, whichever ranks pass such memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <random>
#include <set>
#include <span>

#include "src/base/clock.h"
#include "src/communicator/autotuning/host_autotuning.h"
#include "src/communicator/autotuning/machine_name.h"
#include "src/communicator/control/mesh.h"
#include "src/communicator/control/regions.h"
#include "src/communicator/group.h"
#include "src/communicator/planning/planning.h"
#include "tests/communicator/cases.h"
#include "tests/communicator/joined_ranks.h"
#include "tests/tuner/folder.h"

namespace tutti::test {
namespace {

using test::Folder;

constexpr std::size_t kMaxBytes = 1 << 20;

CommunicatorOptions autotuning(const std::string& file = "") {
  CommunicatorOptions options;
  options.tune = Tune::all;
  options.tune_file = file;
  options.version = "0.1.0";
  options.timeout_ms = 60'000;
  options.update_agreement_hash();
  return options;
}

// Input and output of one rank, in memory that peers can map and in memory that they cannot.
class Buffers {
 public:
  Buffers(const Case& test, Rank rank)
      : test_(test),
        rank_(rank),
        shown_(Regions::of_process().allocate(2 * kMaxBytes).value()),
        hidden_(2 * kMaxBytes),
        outputs_(output_blocks(test.problem, rank) * test.count) {
    const std::vector<float> input = input_of(test, rank);
    TUTTI_ASSERT(std::max(input.size(), outputs_) * sizeof(float) <= kMaxBytes);
    const auto bytes = std::as_bytes(std::span(input));  // Empty if the rank only receives.
    for (std::byte* memory : {shown_, hidden_.data()}) std::copy(bytes.begin(), bytes.end(), memory);
  }
  ~Buffers() { EXPECT_TRUE(Regions::of_process().free(shown_).ok()); }
  Buffers(const Buffers&) = delete;

  Call call(bool shown) {
    std::byte* memory = shown ? shown_ : hidden_.data();
    Call call;
    call.collective = test_.problem.collective;
    call.root = test_.problem.root;
    call.count = test_.count;
    call.input = memory;
    call.output = memory + kMaxBytes;
    for (std::size_t i = 0; i < outputs_; i += kStride)
      std::memcpy(call.output + i * sizeof(float), &kUntouched, sizeof kUntouched);
    return call;
  }

  // Checks every kStride-th element, which includes elements of all units and chunks.
  Status check(const Call& call) const {
    for (std::size_t i = 0; i < outputs_; i += kStride) {
      float value = 0;
      std::memcpy(&value, call.output + i * sizeof(float), sizeof value);
      if (value != expected(test_, rank_, i)) return internal_error("element " + std::to_string(i) + " is wrong");
    }
    return {};
  }

 private:
  static constexpr std::size_t kStride = 1009;
  const Case test_;
  const Rank rank_;
  std::byte* shown_;
  std::vector<std::byte> hidden_;
  std::size_t outputs_;
};

// Returns whether a rank passes mappable memory in an operation.
using Showing = std::function<bool(Rank rank, int operation)>;
const Showing kAll = [](Rank, int) { return true; };
const Showing kNone = [](Rank, int) { return false; };

// Runs the same call repeatedly. Returns the choice of each operation, which must be the same on all ranks.
std::vector<std::string> run_often(Communicators& ranks, const Case& test, int times, const Showing& shows) {
  std::vector<std::vector<std::string>> ways(ranks.size());
  const auto statuses = on_all(ranks, [&](Communicator& communicator) -> Status {
    const Rank rank = communicator.rank();
    Buffers buffers(test, rank);
    for (int i = 0; i < times; ++i) {
      const Call call = buffers.call(shows(rank, i));
      TUTTI_CHECK_OK(communicator.run(call, nullptr));
      TUTTI_CHECK_OK(buffers.check(call).during("operation " + std::to_string(i)));
      ways[rank].push_back(way_of(communicator));
    }
    return {};
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) EXPECT_EQ(ways[rank], ways[0]) << "rank " << rank;
  return ways[0];
}

bool is_mapped(const std::string& way) { return way.find("_mapped") != std::string::npos; }
std::set<std::string> distinct(const std::vector<std::string>& ways, std::size_t from = 0) {
  return {ways.begin() + static_cast<std::ptrdiff_t>(from), ways.end()};
}

// Runs calls, and delays each one by 5 ms unless it uses the choice `quick`. Returns the last choice.
std::string tuned_where_others_are_slow(const std::string& quick, const Case& test) {
  constexpr std::int64_t kSlowNs = 5'000'000;
  Communicators ranks = meet(test.problem.ranks, autotuning());
  std::vector<std::string> last(ranks.size());
  const auto statuses = on_all(ranks, [&](Communicator& communicator) -> Status {
    Buffers buffers(test, communicator.rank());
    for (int i = 0; i < 310; ++i) {
      const Call call = buffers.call(true);
      std::vector<std::unique_ptr<Operation>> started(1);
      started[0] = TUTTI_TRY(communicator.start(call, nullptr));
      const std::int64_t began_ns = now_ns();
      while (i > 16 && i < 300 && way_of(communicator) != quick && now_ns() - began_ns < kSlowNs) continue;
      TUTTI_CHECK_OK(drive(started));
      TUTTI_CHECK_OK(buffers.check(call));
      last[communicator.rank()] = way_of(communicator);
    }
    return {};
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
  for (const std::string& each : last) EXPECT_EQ(each, last[0]);
  return last[0];
}

// Makes each of three choices the fastest in turn. Repeats, since other programs can slow down the choice that should
// be fastest.
TEST(AutotuningMapped, KeepsFastestChoice) {
  for (const char* quick : {"direct_mapped ", "ring Simple", "direct Simple"}) {
    std::string tuned;
    for (int i = 0; i < 4 && tuned != quick; ++i)
      tuned = tuned_where_others_are_slow(quick, case_of(Collective::all_gather, 3, 8'000));
    EXPECT_EQ(tuned, quick);
  }
}

// Ranks pass mappable or private memory at random. All must make the same choice for each call, and use mapped
// algorithms only if all pass mappable memory.
TEST(AutotuningMapped, ChoosesTheSameOnAllRanks_WhicheverPassMappableBuffers) {
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (const Collective collective :
       {Collective::all_reduce, Collective::all_gather, Collective::broadcast, Collective::all_to_all}) {
    Communicators ranks = meet(3, autotuning());
    const auto shows = [&](Rank rank, int operation) {
      std::mt19937 random(seed + static_cast<unsigned>(operation / 7));
      const auto kind = random() % 4;
      return kind < 2 || (kind == 2 && rank != random() % 3);
    };
    const auto ways = run_often(ranks, case_of(collective, 3, 8'000), 500, shows);
    ASSERT_FALSE(HasFailure()) << name(collective);
    EXPECT_GT(distinct(ways).size(), 2U) << name(collective);
    for (int i = 0; i < 500; ++i) {
      const bool all = shows(0, i) && shows(1, i) && shows(2, i);
      EXPECT_TRUE(all || !is_mapped(ways[static_cast<std::size_t>(i)])) << name(collective) << " operation " << i;
    }
  }
}

void leave(Communicators& ranks) {
  for (const auto& rank : ranks) EXPECT_TRUE(rank->leave().ok());
  ranks.clear();
}

int longest(const std::vector<Candidate>& all, const Machine& machine) {
  const TuningClass tuning({}, all, autotuner_options(false, machine.ranks_per_core > 1));
  return static_cast<int>(tuning.autotuner.max_operations());
}

// Returns the number of alternating calls after which autotuning of both kinds has ended. While mapped calls try a
// candidate that uses lanes, calls of both kinds count for them, and tuning of private calls makes no progress. At
// other times every other call counts for each kind.
int max_alternating_calls(const Case& test, const Machine& machine) {
  Query query = query_of(test.problem, test.count * sizeof(float));
  query.machine = &machine;
  query.mapped = true;
  std::vector<Candidate> all = candidates(query).value();
  const int mapped = longest(all, machine);
  std::erase_if(all, [](const Candidate& candidate) { return candidate.choice.mapped; });
  return mapped + 2 * std::max(mapped, longest(all, machine));
}

// Returns the saved result of such calls; null if there is none.
const TunedClass* result_of(const TuneCache::Machine& machine, const Case& test, bool mapped) {
  const TunedClass wanted = {test.problem.collective, size_class(test.count * sizeof(float)), {}, mapped};
  const auto found = std::find_if(machine.classes.begin(), machine.classes.end(),
                                  [&](const TunedClass& tuned) { return tuned.same_calls(wanted); });
  return found == machine.classes.end() ? nullptr : &*found;
}

// Returns the best measured candidate, in the format of way_of().
std::string choice_of(const TunedClass& result) {
  const TunedCandidate& kept = result.candidates[0];
  EXPECT_GT(kept.measured_us, 0);
  return kept.algorithm + " " + (is_mapped(kept.algorithm) ? "" : name(kept.protocol));
}

TEST(AutotuningMapped, SavesResultsOfBothKindsOfCalls) {
  const Folder folder;
  const CommunicatorOptions options = autotuning(folder.file());
  const Case copy = case_of(Collective::all_gather, 2, 80'000);
  Communicators ranks = meet(2, options);
  const Hosts& hosts = ranks.front()->mesh().hosts();
  const std::string name_here = machine_name(options, hosts);
  const int pairs = max_alternating_calls(copy, machine_of(hosts)) / 2 + 1;
  const auto ways = run_often(ranks, copy, 2 * pairs, [](Rank, int i) { return i % 2 == 0; });
  leave(ranks);
  auto cache = read_tune_cache(folder.file());
  ASSERT_TRUE(cache.ok()) << std::move(cache).status().message();
  const TuneCache::Machine* machine = cache.value().find(name_here);
  ASSERT_NE(machine, nullptr) << cache.value().machines.size() << format(cache.value());
  const TunedClass* const mapped = result_of(*machine, copy, true);
  const TunedClass* const lanes = result_of(*machine, copy, false);
  ASSERT_NE(mapped, nullptr) << format(cache.value());
  // If mapped calls use lanes, they have the choice of private calls, which need no result of their own.
  const bool by_lanes = !is_mapped(mapped->candidates[0].algorithm);
  ASSERT_TRUE(by_lanes || lanes != nullptr) << format(cache.value());
  const std::string private_choice = choice_of(lanes != nullptr ? *lanes : *mapped);
  EXPECT_EQ(ways.back(), private_choice);
  EXPECT_EQ(ways[ways.size() - 2], by_lanes ? private_choice : choice_of(*mapped));
}

// Saves each choice in turn, so that at least one differs from the tuner's default. Calls must use the saved choice
// from the first one on.
TEST(AutotuningMapped, UsesSavedResult) {
  const Folder folder;
  const CommunicatorOptions options = autotuning(folder.file());
  const Case copy = case_of(Collective::broadcast, 3, 16'000);
  Communicators first = meet(3, options);
  const std::string machine = machine_name(options, first.front()->mesh().hosts());
  leave(first);
  const auto tuned = [&](bool mapped, const char* algorithm) {
    TunedClass made = {Collective::broadcast, size_class(64'000), {}, mapped};
    made.candidates.push_back({algorithm, Protocol::simple, 1, 1, 1, 1});
    return made;
  };
  for (const char* mapped : {"split_mapped", "direct_mapped", "chain", "direct"}) {
    for (const char* lanes : {"direct", "chain"}) {
      std::filesystem::remove(folder.file());
      ASSERT_TRUE(add_to_tune_cache(folder.file(), {machine, {tuned(true, mapped), tuned(false, lanes)}}).ok());
      Communicators ranks = meet(3, options);
      const bool asks = is_mapped(mapped);
      EXPECT_EQ(distinct(run_often(ranks, copy, 40, kAll)),
                std::set<std::string>{asks ? std::string(mapped) + " " : std::string(lanes) + " Simple"});
      EXPECT_EQ(distinct(run_often(ranks, copy, 40, kNone)), std::set<std::string>{std::string(lanes) + " Simple"});
      leave(ranks);
    }
  }
}

}  // namespace
}  // namespace tutti::test
