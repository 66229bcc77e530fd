// Proposals of each pair of ranks to continue without some ranks. A rank sends a proposal to every peer that it
// continues with. The proposal holds until it is withdrawn with a reason, or until both ranks have made one and agree.
// Both ends number the proposals of a pair identically, so that frames of a failed attempt are not taken for the next
// one.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/communicator/control/mesh.h"

namespace tutti {

// List of excluded ranks: a digest that distinguishes lists, and the first ranks for messages. Plain data of fixed
// width.
struct ExcludedList {
  static constexpr std::uint32_t kMaxShown = 32;
  std::uint64_t digest = 0;
  std::uint32_t count = 0;
  std::uint32_t reserved = 0;
  std::array<std::uint32_t, kMaxShown> first{};

  static ExcludedList of(const std::vector<Rank>& sorted);
  bool operator==(const ExcludedList&) const = default;
  std::string describe() const;  // Example: "ranks 2, 3" or "no rank".
};
static_assert(sizeof(ExcludedList) == 144);

class Proposals {
 public:
  struct Pair {
    std::uint64_t number = 0;            // Number of concluded or withdrawn proposals of the pair.
    bool made = false;                   // This rank's proposal is outstanding.
    std::optional<ExcludedList> theirs;  // The peer's proposal if it is outstanding.
    Contact contact;                     // The contact that the peer sent with its proposal.
    Status withdrawn;                    // Why the peer withdrew its last proposal; ok if it did not.
  };

  Pair& with(Rank peer) { return pairs_[peer]; }
  // Sends a proposal. Returns false if the socket is full; try again later.
  Result<bool> make(Mesh& mesh, Rank peer, const ExcludedList& list, const Passage& passage);
  // Withdraws this rank's proposal if it is outstanding. The peer is notified unless the socket is full.
  void withdraw(Mesh& mesh, Rank peer, const Status& reason);
  // Ends the pair's proposals after both ranks have agreed.
  void conclude(Rank peer);
  // Returns how often ranks have continued without the ranks of a list. Equal on all ranks that continued, unlike the
  // number of a pair, which conclude() increments.
  std::uint64_t times_continued(const ExcludedList& list) const;
  void count_continuation(const ExcludedList& list) { ++continued_[list.digest]; }
  // Processes a frame of kind proposal or refusal.
  Status process(Rank peer, ReceivedFrame received);

 private:
  Status take_refusal(Rank peer, const Frame& frame);

  std::map<Rank, Pair> pairs_;
  std::map<std::uint64_t, std::uint64_t> continued_;  // By digest of the list.
};

}  // namespace tutti
