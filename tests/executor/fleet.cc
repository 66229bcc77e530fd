#include "tests/executor/fleet.h"

#include <thread>

#include "tests/executor/sailor.h"

namespace tutti::test {
namespace {

// Each rank is a thread.
std::string sail(const std::vector<std::unique_ptr<Sailor>>& sailors, const Voyage& voyage) {
  std::vector<std::vector<RankBuffers>> buffers(voyage.operations);
  for (std::uint32_t operation = 0; operation < voyage.operations; ++operation) {
    for (const auto& sailor : sailors) buffers[operation].push_back(sailor->buffers(operation));
  }
  Watch watch;
  std::vector<std::thread> threads;
  for (const auto& sailor : sailors) threads.emplace_back([&] { sailor->sail(buffers, watch); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& sailor : sailors) {
    if (!sailor->stopped_by().empty()) return sailor->stopped_by();
  }
  return "";
}

}  // namespace

std::string Fleet::run(const Voyage& voyage) {
  std::vector<bool> in_place;
  for (std::size_t rank = 0; rank < voyage.plans[0].size(); ++rank)
    in_place.push_back(voyage.way == Way::in_place || (voyage.way == Way::mixed && random_() % 2 == 0));
  Convoy convoy(voyage, transport_, in_place);
  for (const auto& [spec, wire] : convoy.wires().all()) {
    if (spec.slot_bytes > 0) ++lanes_[{spec.form, spec.protocol}];
  }
  const std::string complaint =
      voyage.engine == nullptr ? sail(convoy.sailors(), voyage) : voyage.engine->run(convoy.calls(), voyage.channels);
  for (const auto& sailor : convoy.sailors()) brief_runs_ += sailor->brief_runs();
  return complaint.empty() ? convoy.complaint() : complaint;
}

}  // namespace tutti::test
