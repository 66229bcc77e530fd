// Ranks that make calls of all kinds with random pauses between them, so that each rank falls asleep and is woken in
// many states.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

#include "src/communicator/group.h"
#include "tests/communicator/calls.h"
#include "tests/communicator/ranks.h"

namespace tutti::test {

inline void pause_at_random(std::mt19937& random) {
  constexpr int kPausesUs[] = {0, 0, 0, 0, 20, 60, 100, 300, 1'000, 4'000};
  const int pause_us = kPausesUs[random() % std::size(kPausesUs)];
  if (pause_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
}

// One call of all ranks. `kind` and `count` are equal on all ranks.
inline Status call_at_random(Communicator& communicator, std::uint32_t kind, std::size_t count) {
  const Rank ranks = communicator.ranks(), self = communicator.rank();
  if (kind % 4 == 0) {  // Each rank sends to the next one, in a group.
    std::vector<int> sent(count, static_cast<int>(self)), received(count, -1);
    const Rank from = (self + ranks - 1) % ranks;
    TUTTI_CHECK_OK(run_group({{&communicator, message(Kind::send, (self + 1) % ranks, sent), {}},
                              {&communicator, message(Kind::recv, from, received), {}}}));
    EXPECT_EQ(received, std::vector<int>(count, static_cast<int>(from)));
    return {};
  }
  if (kind % 4 == 1) {  // A message that the receiver may expect late.
    std::vector<int> data(count, static_cast<int>(self));
    if (self == 0) return communicator.run(message(Kind::send, 1, data));
    if (self == 1) return communicator.run(message(Kind::recv, 0, data));
    return {};
  }
  std::vector<float> buffer(count, static_cast<float>(self));
  Call call = all_reduce(buffer);
  if (kind % 4 == 2) call.collective = Collective::broadcast;
  TUTTI_CHECK_OK(communicator.run(call));
  const float sum = static_cast<float>(ranks * (ranks - 1)) / 2;
  EXPECT_EQ(buffer, std::vector<float>(count, kind % 4 == 2 ? 0 : sum));
  return {};
}

inline void make_calls_with_pauses(Communicators ranks, int calls) {
  constexpr std::size_t kCounts[] = {1, 2, 100, 1'000, 40'000, 400'000};
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const auto statuses = on_all(ranks, [&](Communicator& communicator) -> Status {
    std::mt19937 pauses(seed + 1 + communicator.rank()), choices(seed);
    for (int i = 0; i < calls; ++i) {
      const auto kind = static_cast<std::uint32_t>(choices());
      const std::size_t count = kCounts[choices() % std::size(kCounts)];
      pause_at_random(pauses);
      TUTTI_CHECK_OK(call_at_random(communicator, kind, count));
    }
    return communicator.finalize();
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
}

}  // namespace tutti::test
