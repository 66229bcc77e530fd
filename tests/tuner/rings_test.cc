// The search for rings, against exhaustive search.
#include "src/tuner/rings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>
#include <string>

#include "src/base/service_thread.h"

namespace tutti::test {
namespace {

using Random = std::mt19937;

std::uint32_t below(Random& random, std::uint32_t end) { return static_cast<std::uint32_t>(random() % end); }

// Adds a separate link in each direction between two vertices.
void connect(RingSearchProblem& question, std::uint32_t a, std::uint32_t b, double rate) {
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    question.uses[from * question.size() + to] = {{static_cast<std::uint32_t>(question.rates.size()), 1}};
    question.rates.push_back(rate);
  }
}

RingSearchProblem empty(std::uint32_t vertices, std::uint32_t gates = 0) {
  RingSearchProblem question;
  question.vertices = vertices;
  question.gates = gates;
  question.uses.resize(std::size_t{question.size()} * question.size());
  return question;
}

// Returns NVLinks of up to four bricks between some pairs, as in a mesh with missing links.
RingSearchProblem mesh(std::uint32_t vertices, Random& random) {
  RingSearchProblem question = empty(vertices);
  for (std::uint32_t a = 0; a < vertices; ++a)
    for (std::uint32_t b = a + 1; b < vertices; ++b)
      if (const std::uint32_t bricks = below(random, 5); bricks > 0) connect(question, a, b, 25.0 * bricks);
  return question;
}

// Returns a bus below each of two sockets, and a link between the sockets.
RingSearchProblem buses(std::uint32_t vertices, Random& random) {
  RingSearchProblem question = empty(vertices);
  const std::uint32_t socket_of = below(random, vertices) + 1;  // The first vertex of the second socket.
  const double bus = 10 + below(random, 3) * 10, between = 5 + below(random, 4) * 5;
  for (std::uint32_t i = 0; i < 2 * vertices + 2; ++i) question.rates.push_back(i < 2 * vertices ? bus : between);
  for (std::uint32_t from = 0; from < vertices; ++from) {
    for (std::uint32_t to = 0; to < vertices; ++to) {
      if (from == to) continue;
      std::vector<Use>& uses = question.uses[from * vertices + to];
      uses = {{from, 1}, {vertices + to, 1}};
      if ((from < socket_of) != (to < socket_of)) uses.push_back({2 * vertices + (from < socket_of ? 0 : 1), 1});
    }
  }
  return question;
}

// Returns a question with buses for one number in three, and a mesh otherwise.
RingSearchProblem random_question(int number, std::uint32_t vertices, Random& random) {
  return number % 3 == 0 ? buses(vertices, random) : mesh(vertices, random);
}

// Returns every ring that begins at vertex 0.
std::vector<Ring> all_rings(const RingSearchProblem& question) {
  std::vector<Ring> all;
  std::vector<std::uint32_t> order(question.vertices);
  std::iota(order.begin(), order.end(), 0U);
  do {
    if (rate_of(question, {Ring{order, 0}}) > 0) all.push_back({order, 0});
  } while (std::next_permutation(order.begin() + 1, order.end()));
  return all;
}

// Searches the largest set of rings with a rate that fit together: tries each ring several times, in one order.
class Packing {
 public:
  Packing(const RingSearchProblem& question, std::vector<Ring> all, double rate, std::size_t max)
      : question_(question), all_(std::move(all)), rate_(rate), max_(max) {}
  std::size_t pack() {
    go_on(0);
    return best_;
  }

 private:
  void go_on(std::size_t first) {
    best_ = std::max(best_, taken_.size());
    for (std::size_t i = first; i < all_.size() && best_ < max_; ++i) {
      taken_.push_back(all_[i]);
      if (rate_of(question_, taken_) >= rate_ * (1 - 1e-9)) go_on(i);
      taken_.pop_back();
    }
  }
  const RingSearchProblem& question_;
  std::vector<Ring> all_;
  double rate_;
  std::size_t max_;
  std::vector<Ring> taken_;
  std::size_t best_ = 0;
};

double best_sum(const RingSearchProblem& question) {
  const std::vector<Ring> all = all_rings(question);
  std::set<double> rates;
  for (const double rate : question.rates)
    for (std::uint32_t rings = 1; rings <= question.max_rings * question.vertices; ++rings) rates.insert(rate / rings);
  double best = 0;
  for (const double rate : rates) {
    std::vector<Ring> fit;
    for (const Ring& ring : all)
      if (rate_of(question, {ring}) >= rate * (1 - 1e-9)) fit.push_back(ring);
    const std::size_t rings = fit.empty() ? 0 : Packing(question, fit, rate, question.max_rings).pack();
    best = std::max(best, rate * static_cast<double>(rings));
  }
  return best;
}

void expect_sound(const RingSearchProblem& question, const RingSet& found) {
  for (const Ring& ring : found.rings) {
    std::vector<std::uint32_t> sorted = ring.vertices;
    std::sort(sorted.begin(), sorted.end());
    ASSERT_EQ(sorted.size(), question.vertices);
    for (std::uint32_t i = 0; i < sorted.size(); ++i) ASSERT_EQ(sorted[i], i);
  }
  EXPECT_EQ(found.gbytes_per_s, rate_of(question, found.rings));
  EXPECT_LE(found.rings.size(), question.max_rings);
  EXPECT_LE(found.visits, kMaxVisits);
}

TEST(RingSearch, FindsOptimalSets) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int i = 0; i < 500; ++i) {
    const std::uint32_t vertices = 2 + below(random, 4);
    RingSearchProblem question = random_question(i, vertices, random);
    question.max_rings = 4;
    const RingSet found = find_rings(question);
    ASSERT_NO_FATAL_FAILURE(expect_sound(question, found));
    EXPECT_NEAR(found.gbytes_per_s * static_cast<double>(found.rings.size()), best_sum(question), 1e-6)
        << "question " << i << " of " << vertices << " vertices";
  }
}

// The search finds one ring through up to eight vertices. No other ring has a slowest link with more bandwidth.
TEST(RingSearch, FindsWidestRing_OfEightVertices) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int i = 0; i < 120; ++i) {
    const std::uint32_t vertices = 6 + below(random, 3);
    RingSearchProblem question = random_question(i, vertices, random);
    question.max_rings = 1;
    const RingSet found = find_rings(question);
    ASSERT_NO_FATAL_FAILURE(expect_sound(question, found));
    double best = 0;
    for (const Ring& ring : all_rings(question)) best = std::max(best, rate_of(question, {ring}));
    EXPECT_NEAR(found.gbytes_per_s, best, 1e-6) << "question " << i << " of " << vertices << " vertices";
  }
}

// The links of a vertex have high total bandwidth, but each link has little. Searches with the rate of a single link
// fail before their first step, and must count as a visit.
TEST(RingSearch, CountsEachTriedRate) {
  RingSearchProblem question = empty(30);
  for (std::uint32_t a = 0; a < 30; ++a)
    for (std::uint32_t b = a + 1; b < 30; ++b) connect(question, a, b, 1);
  for (std::uint32_t i = 0; i < 1'000; ++i) {
    question.uses[1].push_back({static_cast<std::uint32_t>(question.rates.size()), 1});
    question.rates.push_back(2 + 0.01 * i);
  }
  question.max_rings = 1;
  const RingSet found = find_rings(question);
  EXPECT_GE(found.visits, 1'000u);
  EXPECT_DOUBLE_EQ(found.gbytes_per_s, 1);
}

// Each ring uses its own gate. The vertices have enough capacity for all rings.
RingSearchProblem with_gates(std::uint32_t vertices, std::uint32_t gates) {
  RingSearchProblem question = empty(vertices, gates);
  question.rates.assign(2 * question.size(), 1);  // Out of each, and into each.
  std::fill_n(question.rates.begin(), 2 * vertices, gates);
  for (std::uint32_t from = 0; from < question.size(); ++from)
    for (std::uint32_t to = 0; to < question.size(); ++to)
      if (from != to) question.uses[from * question.size() + to] = {{2 * from, 1}, {2 * to + 1, 1}};
  return question;
}

// The calling thread may have a small stack, like the library's threads. With the maximum of vertices and rings, a
// search is thousands of steps deep.
TEST(RingSearch, NeedsLittleStack) {
  const RingSearchProblem question = with_gates(kMaxVertices, 28);
  RingSet found;
  {
    const auto thread = LibraryThread::start([&] { found = find_rings(question); });
    ASSERT_TRUE(thread.ok());
  }
  EXPECT_EQ(found.rings.size(), 28u);
  EXPECT_DOUBLE_EQ(found.gbytes_per_s, 1);
}

// Recursion is as deep as the number of rings, which is limited.
TEST(RingSearch, LimitsNumberOfRings) {
  RingSearchProblem question = with_gates(4, kMaxRings + 8);
  question.max_rings = kMaxRings + 8;
  EXPECT_EQ(find_rings(question).rings.size(), kMaxRings);
}

}  // namespace
}  // namespace tutti::test
