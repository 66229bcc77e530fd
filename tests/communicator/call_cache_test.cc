// CallCache with a scripted preparer: which state calls find, and which state leaves the cache.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/communicator/call/options.h"
#include "src/communicator/planning/call_cache.h"

namespace tutti::test {
namespace {

struct ScriptedPreparer {
  using Prepared = std::string;
  using Trial = int;
  struct Class {
    bool is_settled = false;
    bool settled() const { return is_settled; }
    static Trial next() { return 7; }
  };

  Result<Class*> class_of(const Call&, const CommunicatorOptions&) { return tuned; }
  Result<std::unique_ptr<std::string>> prepare(const Call& call, const CommunicatorOptions&) {
    if (fails) return unsupported("scripted");
    return std::make_unique<std::string>("call " + std::to_string(call.count));
  }
  Result<std::unique_ptr<std::string>> prepare_trial(const Call&, const CommunicatorOptions&, const Class&,
                                                     Trial trial) {
    if (fails) return unsupported("scripted");
    return std::make_unique<std::string>("trial " + std::to_string(trial));
  }
  void retire(std::unique_ptr<std::string> prepared) { retired.push_back(*prepared); }

  Class* tuned = nullptr;  // Null: calls are not tuned.
  bool fails = false;
  std::vector<std::string> retired;
};
using Cache = CallCache<ScriptedPreparer>;
using Slot = Cache::Slot;

Call call_of_count(std::uint64_t count) {
  Call call;
  call.count = count;
  return call;
}

// Prepares a call and returns its slot.
Slot* fill(Cache& cache, std::uint64_t count) { return cache.fill({.count = count}, call_of_count(count), {}).value(); }

TEST(CallCache, FindsState_ForEqualKeysOnly) {
  ScriptedPreparer preparer;
  Cache cache(preparer);
  const CallKey key = {.count = 3, .shape = 5, .agreement_hash = 7};
  EXPECT_EQ(cache.find(key), nullptr);
  Slot* slot = cache.fill(key, call_of_count(3), {}).value();
  ASSERT_EQ(cache.find(key), slot);
  EXPECT_EQ(*slot->prepared(), "call 3");
  EXPECT_EQ(slot->tuned(), nullptr);
  for (const CallKey& other :
       {CallKey{4, 5, 7}, CallKey{3, 6, 7}, CallKey{3, 5, 8}, CallKey{3, 5, 7, true}, CallKey{3, 5, 7, false, true}})
    EXPECT_EQ(cache.find(other), nullptr);
}

TEST(CallCache, RetiresState_WhenAnotherKeyReplacesIt) {
  ScriptedPreparer preparer;
  Cache cache(preparer);
  constexpr std::uint64_t kCalls = 2000;
  for (std::uint64_t count = 1; count <= kCalls; ++count) fill(cache, count);
  std::size_t found = 0;
  for (std::uint64_t count = 1; count <= kCalls; ++count) {
    const Slot* slot = cache.find({.count = count});
    if (slot == nullptr) continue;
    ++found;
    EXPECT_EQ(*slot->prepared(), "call " + std::to_string(count));
  }
  EXPECT_GT(found, 0U);
  EXPECT_EQ(preparer.retired.size(), kCalls - found);
}

TEST(CallCache, KeepsOldState_WhenPreparationFails) {
  ScriptedPreparer preparer;
  Cache cache(preparer);
  for (std::uint64_t count = 1; count <= 2000; ++count) fill(cache, count);  // Every slot is filled.
  const std::size_t retired = preparer.retired.size();
  preparer.fails = true;
  EXPECT_FALSE(cache.fill({.count = 5000}, call_of_count(5000), {}).ok());
  EXPECT_EQ(cache.find({.count = 5000}), nullptr);
  EXPECT_EQ(preparer.retired.size(), retired);
}

TEST(CallCache, KeepsBestCandidate_WhenTuningEnds) {
  ScriptedPreparer preparer;
  ScriptedPreparer::Class tuned;
  preparer.tuned = &tuned;
  Cache cache(preparer);
  Slot& slot = *fill(cache, 3);
  ASSERT_EQ(slot.tuned(), &tuned);
  const std::string* first = cache.try_candidate(slot, {}, {}, tuned, 1).value();
  cache.try_candidate(slot, {}, {}, tuned, 2).value();
  EXPECT_EQ(cache.try_candidate(slot, {}, {}, tuned, 1).value(), first);
  cache.settle(slot, 1);
  EXPECT_EQ(slot.tuned(), nullptr);
  EXPECT_EQ(slot.prepared(), first);
  EXPECT_EQ(preparer.retired, std::vector<std::string>{"trial 2"});
}

TEST(CallCache, PreparesResult_WhenClassHasSettled) {
  ScriptedPreparer preparer;
  ScriptedPreparer::Class tuned = {.is_settled = true};
  preparer.tuned = &tuned;
  Cache cache(preparer);
  EXPECT_EQ(*fill(cache, 3)->prepared(), "trial 7");
}

// On devices, calls of a group that were counted before the result was known may be made after it.
TEST(CallCache, ReplacesResult_WhenEarlierCallIsMadeLater) {
  ScriptedPreparer preparer;
  ScriptedPreparer::Class tuned = {.is_settled = true};
  preparer.tuned = &tuned;
  Cache cache(preparer);
  Slot& slot = *fill(cache, 3);
  EXPECT_EQ(*cache.try_candidate(slot, {}, {}, tuned, 1).value(), "trial 1");
  EXPECT_EQ(preparer.retired, std::vector<std::string>{"trial 7"});
  EXPECT_EQ(cache.find({.count = 3}), &slot);
}

TEST(CallCache, PreparesCandidateAgain_WhenItFailedBefore) {
  ScriptedPreparer preparer;
  ScriptedPreparer::Class tuned;
  preparer.tuned = &tuned;
  Cache cache(preparer);
  Slot& slot = *fill(cache, 3);
  preparer.fails = true;
  EXPECT_FALSE(cache.try_candidate(slot, {}, {}, tuned, 1).ok());
  preparer.fails = false;
  EXPECT_TRUE(cache.try_candidate(slot, {}, {}, tuned, 1).ok());
  cache.clear(slot);
  EXPECT_EQ(cache.find({.count = 3}), nullptr);
  EXPECT_EQ(preparer.retired, std::vector<std::string>{"trial 1"});
}

}  // namespace
}  // namespace tutti::test
