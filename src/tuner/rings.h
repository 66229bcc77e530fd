// Search for rings through all vertices over shared links, with maximum total bandwidth. map_ranks.h maps vertices and
// links to a topology.
#pragma once

#include <cstdint>
#include <vector>

namespace tutti {

inline constexpr std::uint32_t kMaxRings = 32;
// Maximum vertices of a search; beyond, vertices are used in the given order.
inline constexpr std::uint32_t kMaxVertices = 128;
// Maximum steps between vertices that a search tries: in total, and per rate. Each rate counts as one more. The search
// is bounded by steps instead of time, so that all ranks get the same result.
inline constexpr std::uint32_t kMaxVisits = 20'000;
inline constexpr std::uint32_t kMaxVisitsAtARate = 4'000;

// Share of one direction of a link that a hop uses.
struct Use {
  std::uint32_t link = 0;  // Index into RingSearchProblem::rates.
  double part = 1;         // Relative to the ring's rate.
};

struct RingSearchProblem {
  std::uint32_t vertices = 0;
  // Gates are numbered after the vertices. Each ring passes through one gate and begins after it. 0: rings stay inside.
  std::uint32_t gates = 0;
  std::vector<double> rates;           // GB/s of each link direction.
  std::vector<std::vector<Use>> uses;  // [from * size() + to]; empty: not connected.
  std::vector<double>
      latencies_us;  // [from * size() + to]: tie-breaker for equally wide paths, shortest first. May be empty.
  std::uint32_t max_rings = kMaxRings;  // At most kMaxRings.

  std::uint32_t size() const { return vertices + gates; }
  const std::vector<Use>& use(std::uint32_t from, std::uint32_t to) const { return uses[from * size() + to]; }
};

struct Ring {
  std::vector<std::uint32_t> vertices;  // The last vertex connects to the first, or through the gate to other hosts.
  std::uint32_t gate = 0;               // From 0; 0 for rings that stay inside.

  bool operator==(const Ring&) const = default;
};

struct RingSet {
  std::vector<Ring> rings;   // Empty: a vertex is unreachable.
  double gbytes_per_s = 0;   // Per ring and direction, while all are in use. Calls are cut to equal parts.
  std::uint32_t visits = 0;  // Steps that the search has used.
};

// Bounded by the number of steps; deterministic. Among equal total bandwidths, the fewest rings win. Uses some KiB of
// stack, independent of the size of the question.
RingSet find_rings(const RingSearchProblem& question);

// Bandwidth of each ring while all of them are in use.
double rate_of(const RingSearchProblem& question, const std::vector<Ring>& rings);

}  // namespace tutti
