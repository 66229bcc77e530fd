// Symmetries, by which one rank represents all equivalent ranks. A symmetry is a group of permutations of hosts, and of
// places on hosts, that preserves plans and links. Only one rank of each class is simulated. Messages to any member of
// a class arrive at the representative of that class.
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
    rotate,    // i -> (i + k * stride) % size.
    exchange,  // i -> i xor k; size is a power of two.
  };
  struct Axis {
    Moves moves = Moves::none;
    Rank size = 1;
    Rank stride = 1;  // Stride of rotations.

    Rank classes() const { return moves == Moves::none ? size : moves == Moves::rotate ? stride : 1; }
    Rank order() const { return size / classes(); }  // Order of the group.
    Rank representative(Rank i) const { return moves == Moves::none ? i : moves == Moves::rotate ? i % stride : 0; }
    // Returns the image of `other` under the element that moves `by` to its representative.
    Rank seen(Rank by, Rank other) const {
      if (moves == Moves::none) return other;
      return moves == Moves::rotate ? (other + size - by / stride * stride) % size : other ^ by;
    }
    // Returns the image of i under the element with this number, which is less than order().
    Rank moved(Rank i, Rank element) const {
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
  // Returns the distance between two ranks, which rotations preserve.
  Rank distance(Rank from, Rank to) const {
    const Rank hosts_on = (to / places.size + hosts.size - from / places.size) % hosts.size;
    return hosts_on * places.size + (to % places.size + places.size - from % places.size) % places.size;
  }
  Rank moved(Rank rank, Rank element) const {
    return hosts.moved(rank / places.size, element % hosts.order()) * places.size +
           places.moved(rank % places.size, element / hosts.order());
  }
};

// Returns a description for users, such as "8 of 128 ranks, each for all that do the same".
std::string describe(const Symmetry& symmetry);

// Returns the symmetries of plan and network, from the fewest classes to all ranks; the last one is no_symmetry().
// Checks all ranks and rounds if they are few, else some hundred ranks and rounds drawn with a fixed seed.
// make_program() checks each lane again.
std::vector<Symmetry> symmetries_of(const Algorithm& algorithm, const Problem& problem, const Network& network);
Symmetry no_symmetry(const Network& network);

}  // namespace tutti::simulator
