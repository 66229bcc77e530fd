// Rings through all of some stations, over links that the rings share: as much together as the search finds. What
// stations and links are is left to embed.h.
#pragma once

#include <cstdint>
#include <vector>

namespace tutti {

inline constexpr std::uint32_t kMaxRings = 32;
inline constexpr std::uint32_t kMaxStations = 128;  // Of a search; more are taken as they come.
// Steps from a station to the next that are tried, in all and at one rate; each rate that is tried counts as one more.
// Counted, since time is not the same on all ranks.
inline constexpr std::uint32_t kMaxVisits = 20'000;
inline constexpr std::uint32_t kMaxVisitsAtARate = 4'000;

// What going from one station to the next takes of a link, in one direction.
struct Use {
  std::uint32_t link = 0;  // An index of RingQuestion::rates.
  double part = 1;         // Of the ring's rate.
};

struct RingQuestion {
  std::uint32_t stations = 0;
  // Numbered behind the stations. Each ring passes one, and is said to begin behind it. 0: rings stay inside.
  std::uint32_t gates = 0;
  std::vector<double> rates;           // Of each link, in one direction: GB/s.
  std::vector<std::vector<Use>> uses;  // [from * size() + to]; empty: there is no way.
  std::vector<double>
      latencies_us;  // Likewise: of ways that are equally wide the shortest is tried first. May be empty.
  std::uint32_t max_rings = kMaxRings;  // Of more, kMaxRings.

  std::uint32_t size() const { return stations + gates; }
  const std::vector<Use>& use(std::uint32_t from, std::uint32_t to) const { return uses[from * size() + to]; }
};

struct Ring {
  std::vector<std::uint32_t> stations;  // The last leads to the first, or through the gate to those of other hosts.
  std::uint32_t gate = 0;               // From 0; of rings that stay inside 0.

  bool operator==(const Ring&) const = default;
};

struct RingSet {
  std::vector<Ring> rings;   // Empty: some station cannot be reached.
  double gbytes_per_s = 0;   // Of each at once, each way: calls are cut into equal parts for them.
  std::uint32_t visits = 0;  // That it took.
};

// Bounded by visits, and the same for the same question. Of equal sums, the fewest rings. It takes some KiB of the
// stack, however large the question is.
RingSet find_rings(const RingQuestion& question);

// What each of these carries if all work at once.
double rate_of(const RingQuestion& question, const std::vector<Ring>& rings);

}  // namespace tutti
