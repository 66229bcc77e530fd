// Ranks that do the same: one of them stands for all. A symmetry is a group of permutations of hosts, and of the places
// on them, under which plans and links stay what they are; only one rank of each class is simulated, and what it sends
// to any member of a class arrives at the one that stands for that.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/rank.h"
#include "src/plan/algorithm.h"
#include "tools/simulator/network.h"

namespace tutti::simulator {

struct Symmetry {
  enum class Moves : std::uint8_t {
    none,
    rotate,    // i -> i + k * stride, modulo their number.
    exchange,  // i -> i xor k, of a power of two.
  };
  struct Axis {
    Moves moves = Moves::none;
    Rank size = 1;
    Rank stride = 1;  // Stride of rotations.

    Rank classes() const { return moves == Moves::none ? size : moves == Moves::rotate ? stride : 1; }
    Rank order() const { return size / classes(); }  // Order of the group.
    Rank representative(Rank i) const { return moves == Moves::none ? i : moves == Moves::rotate ? i % stride : 0; }
    // Where `other` lies once `by` has been moved to its representative.
    Rank seen(Rank by, Rank other) const {
      if (moves == Moves::none) return other;
      return moves == Moves::rotate ? (other + size - by / stride * stride) % size : other ^ by;
    }
    Rank moved(Rank i, Rank element) const {  // By the element of this number, below order().
      if (moves == Moves::none) return i;
      return moves == Moves::rotate ? (i + element * stride) % size : i ^ element;
    }
  };
  Axis hosts, places;  // Rank = host * places.size + place.

  Rank ranks() const { return hosts.size * places.size; }
  Rank classes() const { return hosts.classes() * places.classes(); }
  Rank order() const { return hosts.order() * places.order(); }
  bool trivial() const { return order() == 1; }

  Rank representative(Rank rank) const {
    return hosts.representative(rank / places.size) * places.size + places.representative(rank % places.size);
  }
  // Classes are numbered in the order of their representatives.
  Rank class_of(Rank rank) const {
    return hosts.representative(rank / places.size) * places.classes() + places.representative(rank % places.size);
  }
  Rank representative_of_class(Rank number) const {
    return number / places.classes() * places.size + number % places.classes();
  }
  Rank seen(Rank by, Rank other) const {
    return hosts.seen(by / places.size, other / places.size) * places.size +
           places.seen(by % places.size, other % places.size);
  }
  // From the one to the other, which rotations leave as it is.
  Rank distance(Rank from, Rank to) const {
    const Rank hosts_on = (to / places.size + hosts.size - from / places.size) % hosts.size;
    return hosts_on * places.size + (to % places.size + places.size - from % places.size) % places.size;
  }
  Rank moved(Rank rank, Rank element) const {
    return hosts.moved(rank / places.size, element % hosts.order()) * places.size +
           places.moved(rank % places.size, element / hosts.order());
  }
};

std::string describe(const Symmetry& symmetry);  // "ranks 0 to 7 of each of 16 hosts alike", for people.

// Symmetries of plan and network: checked for all ranks and rounds if they are few, else for some hundred ranks and
// rounds drawn with a fixed seed. Folding by a symmetry checks each lane again.
// Ordered from the fewest classes to all ranks; the last is always present.
std::vector<Symmetry> symmetries_of(const Algorithm& algorithm, const Problem& problem, const Network& network);
Symmetry no_symmetry(const Network& network);

}  // namespace tutti::simulator
