// Incorrect plans, and the queue of events.
#include "tools/simulator/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "tools/simulator/event_queue.h"
#include "tools/simulator/simulate.h"

namespace tutti::simulator::test {
namespace {

// A ring with one of several defects.
class WrongRing : public Algorithm {
 public:
  enum class Wrong { receives_first, sends_too_much, sends_another_length };
  explicit WrongRing(Wrong wrong) : wrong_(wrong) {}
  const char* name() const override { return "wrong"; }
  const char* summary() const override { return "for tests"; }
  bool supports(const Problem&) const override { return true; }
  Shape shape(const Problem&) const override { return {.units = 2, .rounds = 1, .stages = {0}}; }
  CostLaw cost_law(const Problem&) const override { return {}; }
  void emit(const Problem& problem, Rank self, std::uint32_t, Steps& steps) const override {
    const Rank next = (self + 1) % problem.ranks, previous = (self + problem.ranks - 1) % problem.ranks;
    if (wrong_ == Wrong::receives_first) steps.recv(previous, output(1));
    steps.send(input(0), next);
    if (wrong_ == Wrong::sends_too_much) steps.send(input(0), next);
    if (wrong_ == Wrong::sends_another_length) steps.recv(previous, output(0, 2));
    if (wrong_ == Wrong::sends_too_much) steps.recv(previous, output(1));
  }

 private:
  Wrong wrong_;
};

Network three_ranks() {
  Cluster cluster;
  cluster.host.hosts = {"host"};
  Node domain;
  domain.name = "numa0";
  cluster.host.add(domain);
  cluster.ranks_per_host = 3;
  return Network::make(cluster).value();
}

std::string failure(WrongRing::Wrong wrong) {
  const Network network = three_ranks();
  const WrongRing ring(wrong);
  Costs costs;
  costs.channel_gbytes_per_s.fill(1);
  for (const bool symmetric : {true, false}) {
    Limits limits;
    limits.symmetric = symmetric;
    auto simulation = Simulation::make(network, costs, ring, problem_on(network, Collective::all_gather), limits);
    if (!simulation.ok()) {
      if (symmetric) continue;
      return std::move(simulation).status().message();
    }
    Call call;
    call.bytes = 3e3;
    auto outcome = simulation.value().run(call);
    EXPECT_FALSE(outcome.ok());
    if (outcome.ok()) return "";
    if (!symmetric) return std::move(outcome).status().message();
  }
  return "";
}

TEST(Engine, ReportsDeadlockedRanks) {
  EXPECT_EQ(failure(WrongRing::Wrong::receives_first),
            "3 ranks are deadlocked: rank 0 for a message from rank 2, rank 1 for a message from rank 0, rank 2 for a "
            "message from rank 1");
}

TEST(Engine, ReportsUnmatchedMessages) {
  EXPECT_EQ(failure(WrongRing::Wrong::sends_too_much),
            "wrong plan: rank 0 sends 2 messages or signals to rank 1, which awaits 1");
  EXPECT_NE(failure(WrongRing::Wrong::sends_another_length).find("wrong plan: rank 0 sends "), std::string::npos);
}

// Compares the queue with a sorted set, with few and many concurrent events, and equal times.
TEST(EventQueue, OrdersByTime_ThenByOrder) {
  const std::uint32_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (const std::uint32_t max : {4U, 40U, 400U}) {
    EventQueue queue;
    std::set<Event> expected;
    double last = 0;
    std::uint32_t pushed = 0, popped = 0;
    while (popped < 5000) {
      if (pushed < 5000 && (queue.empty() || (expected.size() < max && random() % 8 != 0))) {
        const Event event = {last + random() % 8, static_cast<std::uint32_t>(random() % 4), pushed++};
        queue.push(event);
        expected.insert(event);
        continue;
      }
      const Event event = queue.pop();
      ASSERT_EQ(event.subject, expected.begin()->subject);
      expected.erase(expected.begin());
      last = event.time;
      ++popped;
      for (std::size_t distance = 0; distance < EventQueue::kAhead; ++distance) {
        const Event* ahead = queue.ahead(distance);
        ASSERT_EQ(ahead == nullptr || ahead->subject == std::next(expected.begin(), distance)->subject, true);
      }
    }
    EXPECT_TRUE(queue.empty());
  }
}

TEST(EventQueue, OrdersEqualTimes_ByOrder) {
  EventQueue queue;
  for (const std::uint32_t order : {3U, 1U, 2U, 0U, 1U}) queue.push({7, order, 9 - order});
  queue.push({6, 9, 0});
  std::vector<std::uint32_t> orders;
  while (!queue.empty()) orders.push_back(queue.pop().order);
  EXPECT_EQ(orders, (std::vector<std::uint32_t>{9, 0, 1, 1, 2, 3}));
}

}  // namespace
}  // namespace tutti::simulator::test
