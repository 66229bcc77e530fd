// Tries rates in the order of the bandwidth they promise. For each rate, depth-first search finds as many rings as fit,
// with the capacity of earlier rings subtracted. The method is NCCL's, plus backtracking over rings. The reverse of a
// ring is tried first, since links are full-duplex.
#include "src/tuner/rings.h"

#include <algorithm>
#include <bitset>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

namespace tutti {
namespace {

constexpr double kSlack = 1 + 1e-9;  // Tolerance for sums of rates.

std::uint32_t max_rings(const RingSearchProblem& question) { return std::min(question.max_rings, kMaxRings); }

double narrowest(const std::vector<double>& rates, const std::vector<Use>& uses) {
  double min = std::numeric_limits<double>::infinity();
  for (const Use& use : uses) min = std::min(min, rates[use.link] / use.part);
  return uses.empty() ? 0 : min;
}

struct Candidate {
  double room, latency_us;
  std::uint32_t vertex;

  bool before(const Candidate& other) const {
    return room != other.room ? room > other.room : latency_us < other.latency_us;
  }
};

constexpr std::uint32_t kNone = ~0u;

// A partial ring.
struct Walk {
  Ring ring;
  std::bitset<kMaxVertices> seen;
  std::uint32_t last = kNone;  // Marked as seen, but must come last; kNone: any vertex may be last.
};

// The steps are kept on the heap, because they can be as many as vertices times rings, and the caller's stack may be
// small. Recursion depth is the number of rings, at most kMaxRings.
class Search {
 public:
  Search(const RingSearchProblem& question, double rate, std::uint32_t max, std::uint32_t visits)
      : question_(question), rate_(rate), max_(max), visits_left_(visits), left_(question.rates) {}

  std::vector<Ring> run() {
    next_ring();
    return std::move(best_);
  }
  std::uint32_t visits_left() const { return visits_left_; }

 private:
  bool done() const { return best_.size() >= max_ || visits_left_ == 0; }

  bool take(std::uint32_t from, std::uint32_t to) {
    const std::vector<Use>& uses = question_.use(from, to);
    if (uses.empty()) return false;
    for (const Use& use : uses)
      if (left_[use.link] * kSlack < use.part * rate_) return false;
    for (const Use& use : uses) left_[use.link] -= use.part * rate_;
    return true;
  }
  void give_back(std::uint32_t from, std::uint32_t to) {
    for (const Use& use : question_.use(from, to)) left_[use.link] += use.part * rate_;
  }

  double room(std::uint32_t from, std::uint32_t to) const { return narrowest(left_, question_.use(from, to)); }

  void next_ring() {
    if (made_.size() > best_.size()) best_ = made_;
    if (done()) return;
    if (made_.size() % 2 == 1) reverse_of(Ring(made_.back()));
    Walk walk;
    if (question_.gates == 0) {
      walk.ring.vertices.push_back(0);
      walk.seen.set(0);
      return extend(walk);
    }
    for (std::uint32_t i = 0; i < question_.gates; ++i) {  // Rings use the gates round-robin.
      walk.ring.gate = static_cast<std::uint32_t>((made_.size() + i) % question_.gates);
      begin_at_gate(walk);
    }
  }

  // The vertex that leaves through the gate is selected first; otherwise it might be far from the gate.
  void begin_at_gate(Walk& walk) {
    const std::uint32_t gate = at(walk);
    choose(gate, walk, Leads::to);
    while (!tried_all()) {
      const std::uint32_t last = next_vertex();
      if (!take(last, gate)) continue;
      walk.last = last;
      walk.seen.set(last);
      extend(walk);
      walk.seen.reset(last);
      give_back(last, gate);
    }
    drop_choice();
  }

  std::uint32_t at(const Walk& walk) const {
    return walk.ring.vertices.empty() ? question_.vertices + walk.ring.gate : walk.ring.vertices.back();
  }

  // Pushes the possible next vertices with sufficient capacity: widest path first, then shortest; ties keep their
  // order.
  enum class Leads : std::uint8_t { from, to };
  void choose(std::uint32_t at, const Walk& walk, Leads leads) {
    const std::size_t first = candidates_.size();
    choices_.push_back({first, first});
    for (std::uint32_t i = 0; i < question_.vertices; ++i) {
      const std::uint32_t behind = at + 1 + i;
      const std::uint32_t other = at >= question_.vertices      ? i
                                  : behind < question_.vertices ? behind
                                                                : behind - question_.vertices;
      if (walk.seen[other]) continue;
      const std::uint32_t from = leads == Leads::from ? at : other, to = leads == Leads::from ? other : at;
      const double left = room(from, to);
      if (left * kSlack < rate_) continue;
      const std::size_t pair = std::size_t{from} * question_.size() + to;
      const Candidate found = {left, pair < question_.latencies_us.size() ? question_.latencies_us[pair] : 0, other};
      std::size_t index = candidates_.size();
      candidates_.push_back(found);
      for (; index > first && found.before(candidates_[index - 1]); --index)
        candidates_[index] = candidates_[index - 1];
      candidates_[index] = found;
    }
  }
  bool tried_all() const { return done() || choices_.back().next == candidates_.size(); }
  std::uint32_t next_vertex() {
    --visits_left_;
    return candidates_[choices_.back().next++].vertex;
  }
  void drop_choice() {
    candidates_.resize(choices_.back().first);
    choices_.pop_back();
  }

  // Depth-first search from the current position.
  void extend(Walk& walk) {
    const std::size_t before = choices_.size();
    if (!arrive(walk)) return;
    while (true) {
      if (tried_all()) {
        drop_choice();
        if (choices_.size() == before) return;
        step_back(walk);
        continue;
      }
      const std::uint32_t from = at(walk), to = next_vertex();
      if (!take(from, to)) continue;
      walk.ring.vertices.push_back(to);
      walk.seen.set(to);
      if (!arrive(walk)) step_back(walk);
    }
  }

  // Returns true if there are vertices to try from here.
  bool arrive(const Walk& walk) {
    const std::size_t seen = walk.ring.vertices.size();
    if (done()) return false;
    if (seen == question_.vertices) {
      close(walk.ring);
      return false;
    }
    if (walk.last == kNone || seen + 1 < question_.vertices) {
      choose(at(walk), walk, Leads::from);
    } else {
      choices_.push_back({candidates_.size(), candidates_.size()});
      candidates_.push_back({0, 0, walk.last});
    }
    return true;
  }

  void step_back(Walk& walk) {
    const std::uint32_t to = walk.ring.vertices.back();
    walk.ring.vertices.pop_back();
    if (to != walk.last) walk.seen.reset(to);
    give_back(at(walk), to);
  }

  // The hop out through a gate was taken at the beginning.
  void close(const Ring& ring) {
    const std::uint32_t from = ring.vertices.back(), to = ring.vertices.front();
    const bool takes = question_.gates == 0 && from != to;
    if (takes && !take(from, to)) return;
    made_.push_back(ring);
    next_ring();
    made_.pop_back();
    if (takes) give_back(from, to);
  }

  // Takes the reverse ring as a whole, or not at all.
  void reverse_of(Ring ring) {
    std::reverse(ring.vertices.begin() + (question_.gates > 0 ? 0 : 1), ring.vertices.end());
    std::vector<std::uint32_t> trail = ring.vertices;
    trail.push_back(question_.gates > 0 ? question_.vertices + ring.gate : trail.front());
    if (question_.gates > 0) trail.insert(trail.begin(), trail.back());
    std::size_t taken = 0;
    const bool loops = trail.size() > 2;
    while (loops && taken + 1 < trail.size() && take(trail[taken], trail[taken + 1])) ++taken;
    if (loops && taken + 1 == trail.size()) {
      visits_left_ -= std::min(visits_left_, question_.vertices);
      made_.push_back(std::move(ring));
      next_ring();
      made_.pop_back();
    }
    while (taken > 0) {
      --taken;
      give_back(trail[taken], trail[taken + 1]);
    }
  }

  const RingSearchProblem& question_;
  const double rate_;
  const std::uint32_t max_;
  std::uint32_t visits_left_;
  std::vector<double> left_;  // Residual capacity of each link.
  std::vector<Ring> made_, best_;
  // A stack of choices. The candidates of each begin at `first`; `next` is the one to try.
  struct Choice {
    std::size_t first, next;
  };
  std::vector<Choice> choices_;
  std::vector<Candidate> candidates_;
};

// Upper bound for the traffic out of (or into) a vertex: the sum over its paths, limited by links that all of them
// share.
double max_through(const RingSearchProblem& question, std::uint32_t vertex, bool sends) {
  std::vector<std::uint32_t> paths_over(question.rates.size(), 0);
  std::vector<double> min_part(question.rates.size(), 1);
  std::uint32_t paths = 0;
  double max = 0;
  for (std::uint32_t other = 0; other < question.size(); ++other) {
    const std::vector<Use>& uses = sends ? question.use(vertex, other) : question.use(other, vertex);
    if (other == vertex || uses.empty()) continue;
    ++paths;
    max += narrowest(question.rates, uses);
    for (const Use& use : uses) {
      ++paths_over[use.link];
      min_part[use.link] = std::min(min_part[use.link], use.part);
    }
  }
  for (std::size_t link = 0; link < paths_over.size(); ++link)
    if (paths > 0 && paths_over[link] == paths) max = std::min(max, question.rates[link] / min_part[link]);
  return max;
}

double max_of_all(const RingSearchProblem& question) {
  const auto through = [&](std::uint32_t vertex) {
    return std::min(max_through(question, vertex, true), max_through(question, vertex, false));
  };
  double bound = std::numeric_limits<double>::infinity(), gates = 0;
  for (std::uint32_t vertex = 0; vertex < question.vertices; ++vertex) bound = std::min(bound, through(vertex));
  for (std::uint32_t gate = 0; gate < question.gates; ++gate) gates += through(question.vertices + gate);
  return question.gates == 0 ? bound : std::min(bound, gates);
}

void sort_unique(std::vector<double>& rates) {
  std::sort(rates.begin(), rates.end(), std::greater<>());
  rates.erase(std::unique(rates.begin(), rates.end(), [](double a, double b) { return a <= b * kSlack; }), rates.end());
}

// Rates worth trying: the capacity of each link or path divided by 1, 2, 3, ... rings.
std::vector<double> rates_of(const RingSearchProblem& question) {
  std::vector<double> wholes;
  std::vector<bool> used(question.rates.size());
  for (const std::vector<Use>& uses : question.uses) {
    for (const Use& use : uses) used[use.link] = true;
    if (!uses.empty()) wholes.push_back(narrowest(question.rates, uses));
  }
  for (std::size_t link = 0; link < used.size(); ++link)
    if (used[link]) wholes.push_back(question.rates[link]);
  sort_unique(wholes);
  std::vector<double> rates;
  for (const double whole : wholes)
    for (std::uint32_t rings = 1; rings <= max_rings(question); ++rings) rates.push_back(whole / rings);
  sort_unique(rates);
  return rates;
}

// The vertices in the given order, if there are too many for a search, or none was found in time.
Ring plain(const RingSearchProblem& question) {
  Ring ring;
  ring.vertices.resize(question.vertices);
  std::iota(ring.vertices.begin(), ring.vertices.end(), 0U);
  return ring;
}

}  // namespace

double rate_of(const RingSearchProblem& question, const std::vector<Ring>& rings) {
  std::vector<double> loads(question.rates.size(), 0);
  for (const Ring& ring : rings) {
    std::vector<std::uint32_t> trail = ring.vertices;
    if (question.gates > 0) trail.push_back(question.vertices + ring.gate);
    if (trail.size() < 2) continue;
    for (std::size_t i = 0; i < trail.size(); ++i) {
      const std::vector<Use>& uses = question.use(trail[i], trail[(i + 1) % trail.size()]);
      if (uses.empty()) return 0;
      for (const Use& use : uses) loads[use.link] += use.part;
    }
  }
  double rate = std::numeric_limits<double>::infinity();
  for (std::size_t link = 0; link < loads.size(); ++link)
    if (loads[link] > 0) rate = std::min(rate, question.rates[link] / loads[link]);
  return std::isinf(rate) ? 0 : rate;
}

RingSet find_rings(const RingSearchProblem& question) {
  RingSet best;
  if (question.vertices == 0) return best;
  std::uint32_t visits = kMaxVisits;
  if (question.vertices <= kMaxVertices) {
    const double max = max_of_all(question);
    std::vector<std::pair<double, double>> promises;  // Upper bound of the total bandwidth, and rate per ring.
    for (const double rate : rates_of(question)) {
      const double rings = std::min<double>(std::floor(max * kSlack / rate), max_rings(question));
      if (rings >= 1) promises.emplace_back(rings * rate, rate);
    }
    std::stable_sort(promises.begin(), promises.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first * kSlack; });
    double carried = 0;
    for (const auto& [promised, rate] : promises) {
      if (promised <= carried * kSlack || visits == 0) break;
      --visits;  // Even if the search fails at once.
      const auto rings = static_cast<std::uint32_t>(std::lround(promised / rate));
      const std::uint32_t given = std::min(visits, kMaxVisitsAtARate);
      Search search(question, rate, rings, given);
      std::vector<Ring> found = search.run();
      visits -= given - search.visits_left();
      if (static_cast<double>(found.size()) * rate <= carried * kSlack) continue;
      carried = static_cast<double>(found.size()) * rate;
      best.rings = std::move(found);
    }
  }
  if (best.rings.empty()) best.rings.push_back(plain(question));
  best.gbytes_per_s = rate_of(question, best.rings);
  if (best.gbytes_per_s == 0 && question.size() > 1) best.rings.clear();
  best.visits = kMaxVisits - visits;
  return best;
}

}  // namespace tutti
