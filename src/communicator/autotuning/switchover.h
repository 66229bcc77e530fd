// Protocol by which the ranks of a host change their behavior at the same operation, without waiting for each other.
// All ranks run the same operations in the same order and count them. One rank, the decider, chooses an outcome and the
// operation from which it holds.
//
// Each rank publishes the number of an operation before it reads the decision (arrive()). The decider offers a number
// above all published numbers, reads them again, and confirms the offer if no rank has reached it (propose()). A rank
// that reaches an unconfirmed offer calls it off and continues as before. The decider calls it off too if it sees such
// a rank. Both use a compare-and-exchange on the same word, so exactly one of them wins.
//
// Proof that all ranks agree: let the offer from operation S be confirmed, and let n be an operation of some rank.
// If n < S, the rank continues as before, whatever it reads.
// If n >= S, the decider did not see n when it read the numbers, otherwise it would not have confirmed. Rank and
// decider each wrote, passed a full fence, and then read the other's word, so at least one saw the other's write.
// Therefore the rank saw the offer or its result. A confirmed offer was not called off. The rank therefore found it
// confirmed, either at once or when it tried to call it off, and applies the outcome.
//
// Each offer for a decision has a larger number than the offers for that decision before it. This holds even if a rank
// publishes smaller numbers again, after its calls were rejected. No word occurs twice, so a successful exchange
// replaces exactly the word that was read.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/plan/problem.h"

namespace tutti {

// Switchover of one class of operations. A view of words in shared memory, which must be zero initially.
class Switchover {
 public:
  struct Decision {
    // Number of the decision in its sequence, 1 to 63. When it is offered, all ranks have seen decision index - 1.
    std::uint32_t index = 1;
    std::uint16_t outcome = 0;
    std::uint64_t from = 0;  // First operation with the outcome; less than 2^40.
    bool operator==(const Decision&) const = default;
  };

  // `word` is common to all ranks. `shown` has one word per rank, which only that rank writes. Both must outlive the
  // view.
  Switchover(std::uint64_t* word, std::vector<std::uint64_t*> shown) : word_(word), shown_(std::move(shown)) {}

  // Returns decision `index` if it applies to the rank's operation `number` (at least 1). Returns nullopt if
  // the operation runs as before.
  std::optional<Decision> arrive(Rank self, std::uint64_t number, std::uint32_t index) const {
    Arrival arrival = show(self, number, index);
    while (!step(arrival)) continue;
    return arrival.follows;
  }

  // Proposes that the outcome holds from `margin` (at least 1) operations after the furthest rank. Returns false if a
  // rank has passed that operation; the caller tries again with a larger margin. Called only by the decider, by one
  // thread at a time, until the decision is confirmed.
  bool propose(std::uint32_t index, std::uint16_t outcome, std::uint64_t margin) const {
    Proposal proposal = prepare(index, outcome, margin);
    while (!step(proposal)) continue;
    return proposal.confirmed;
  }

  // State machines of both sides. Each step() advances one by one shared access; each publishes before it reads.
  struct Arrival {
    std::uint64_t number;
    std::uint32_t index;
    // Offer that the rank has reached and calls off in the next step.
    std::optional<Decision> unconfirmed = std::nullopt;
    std::optional<Decision> follows = std::nullopt;
  };
  struct Proposal {
    Decision offered;
    bool made = false;   // The offer is visible to other ranks.
    Rank looked_at = 0;  // Number of ranks checked since then.
    bool late = false;   // A rank has reached the offer, which is called off in the next step.
    bool confirmed = false;
  };
  Arrival show(Rank self, std::uint64_t number, std::uint32_t index) const;
  Proposal prepare(std::uint32_t index, std::uint16_t outcome, std::uint64_t margin) const;
  bool step(Arrival& arrival) const;    // Returns whether it was the last step.
  bool step(Proposal& proposal) const;  // Returns whether it was the last step.

 private:
  std::uint64_t* word_;
  std::vector<std::uint64_t*> shown_;
};

}  // namespace tutti
