// How the ranks of a host change over together, from one and the same of their operations on, though none of them ever
// waits for another. They make the same operations in the same order and count them; one rank, the decider, has come
// to an outcome, and names the operation from which on it holds.
//
// Each rank shows the number of an operation before it looks what has been decided (arrive()). The decider offers a
// number behind all that were shown, then looks at them again, and confirms the offer if none has come that far
// (propose()). A rank that comes to an offer which is not confirmed calls it off, and goes on as before; so does the
// decider who sees that one has come there. Both are a compare-and-exchange of the same word, so one of them wins.
//
// Why all agree: let an offer from operation S on be confirmed, and n be an operation of some rank. If n < S the rank
// goes on as before, whatever it sees. If n >= S, the decider has not seen n when it looked, or it would not have
// confirmed; each has written, passed a full fence, and then read what the other wrote, so one of them has seen the
// other, and that is the rank: it saw the offer, or what came of it. An offer that is confirmed was not called off: so
// the rank found it confirmed, at once or when it tried to call it off, and takes the outcome. Each offer of a turn
// names a larger number than those before it, though a rank whose calls were refused shows smaller ones again: so no
// word comes twice, and what is exchanged is what was seen.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/plan/problem.h"

namespace tutti {

// Switchover of one class of operations. A view of words in shared memory that are zeroed at first.
class Switchover {
 public:
  struct Decision {
    std::uint32_t turn =
        1;  // Number of the decision in its sequence, 1 to 63. No rank is behind turn - 1 when it is offered.
    std::uint16_t outcome = 0;
    std::uint64_t from = 0;  // Less than 2^40.
    bool operator==(const Decision&) const = default;
  };

  // `word`: one for all; `shown`: one of each rank, which it alone writes. They outlive the view.
  Switchover(std::uint64_t* word, std::vector<std::uint64_t*> shown) : word_(word), shown_(std::move(shown)) {}

  // Returns the decision of this turn for the rank's operation `number`, 1 or more; none: the operation runs as
  // before.
  std::optional<Decision> arrive(Rank self, std::uint64_t number, std::uint32_t turn) const {
    Arrival arrival = show(self, number, turn);
    while (!step(arrival)) continue;
    return arrival.obeys;
  }

  // Called by the deciding rank, one thread at a time, before the turn is confirmed. Proposes that the outcome
  // holds from `margin` operations, 1 or more, after the furthest rank. Returns false if a rank has passed that
  // operation; the caller tries again with a larger margin.
  bool propose(std::uint32_t turn, std::uint16_t outcome, std::uint64_t margin) const {
    Proposal proposal = prepare(turn, outcome, margin);
    while (!step(proposal)) continue;
    return proposal.confirmed;
  }

  // State machines of both sides, advanced one step at a time. Each publishes before it reads.
  struct Arrival {
    std::uint64_t number;
    std::uint32_t turn;
    std::optional<Decision> unconfirmed = std::nullopt;  // That it has come to, and calls off next.
    std::optional<Decision> obeys = std::nullopt;
  };
  struct Proposal {
    Decision offered;
    bool made = false;   // Others may see it.
    Rank looked_at = 0;  // Ranks, since then.
    bool late = false;   // One has; it calls the offer off next.
    bool confirmed = false;
  };
  Arrival show(Rank self, std::uint64_t number, std::uint32_t turn) const;
  Proposal prepare(std::uint32_t turn, std::uint16_t outcome, std::uint64_t margin) const;
  bool step(Arrival& arrival) const;    // Whether it was the last.
  bool step(Proposal& proposal) const;  // As above.

 private:
  std::uint64_t* word_;
  std::vector<std::uint64_t*> shown_;
};

}  // namespace tutti
