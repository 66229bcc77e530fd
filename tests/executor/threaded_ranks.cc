#include "tests/executor/threaded_ranks.h"

#include <thread>

#include "tests/executor/rank_harness.h"

namespace tutti::test {
namespace {

// Runs each rank in a thread.
std::string run_in_threads(const std::vector<std::unique_ptr<RankHarness>>& harnesses, const TestCall& test_call) {
  std::vector<std::vector<RankBuffers>> buffers(test_call.operations);
  for (std::uint32_t operation = 0; operation < test_call.operations; ++operation) {
    for (const auto& harness : harnesses) buffers[operation].push_back(harness->buffers(operation));
  }
  Watch watch;
  std::vector<std::thread> threads;
  for (const auto& harness : harnesses) threads.emplace_back([&] { harness->run(buffers, watch); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& harness : harnesses) {
    if (!harness->stopped_by().empty()) return harness->stopped_by();
  }
  return "";
}

}  // namespace

std::string ThreadedRanks::run(const TestCall& test_call) {
  std::vector<bool> in_place;
  for (std::size_t rank = 0; rank < test_call.plans[0].size(); ++rank)
    in_place.push_back(test_call.in_place == InPlaceUse::in_place ||
                       (test_call.in_place == InPlaceUse::mixed && random_() % 2 == 0));
  RankSet rank_set(test_call, transport_, in_place);
  for (const auto& [spec, lane] : rank_set.lanes_made().all()) {
    if (spec.slot_bytes > 0) ++lanes_[{spec.form, spec.protocol}];
  }
  const std::string error = test_call.engine == nullptr ? run_in_threads(rank_set.harnesses(), test_call)
                                                        : test_call.engine->run(rank_set.calls(), test_call.channels);
  for (const auto& harness : rank_set.harnesses()) brief_runs_ += harness->brief_runs();
  return error.empty() ? rank_set.error() : error;
}

}  // namespace tutti::test
