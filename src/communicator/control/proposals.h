// Proposals of each pair of ranks to continue without some ranks. A rank sends a proposal to every peer that it
// continues with. The proposal stands until it is withdrawn, with the reason, or until both ranks have made one and
// agree. Proposals of a pair are numbered alike at both ends, so that frames of a failed attempt are not taken for
// the next one.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/communicator/control/mesh.h"

namespace tutti {

// List of excluded ranks: a digest that distinguishes lists, and the first ranks for messages. Fixed-width plain
// data.
struct ExcludedList {
  static constexpr std::uint32_t kMaxShown = 32;
  std::uint64_t digest = 0;
  std::uint32_t count = 0;
  std::uint32_t reserved = 0;
  std::array<std::uint32_t, kMaxShown> first{};

  static ExcludedList of(const std::vector<Rank>& sorted);
  bool operator==(const ExcludedList&) const = default;
  std::string describe() const;  // "ranks 2, 3", "no rank"
};
static_assert(sizeof(ExcludedList) == 144);

class Proposals {
 public:
  struct Pair {
    std::uint64_t number = 0;            // Proposals of the two that came to an end so far.
    bool made = false;                   // Ours stands.
    std::optional<ExcludedList> theirs;  // Theirs, if it stands,
    Contact contact;                     // and what they have sent with it.
    Status withdrawn;                    // Why they have withdrawn their last; fine: they have not.
  };

  Pair& with(Rank peer) { return pairs_[peer]; }
  // False: the peer has no room for it; try again later.
  Result<bool> make(Mesh& mesh, Rank peer, const ExcludedList& list, const Passage& passage);
  // Takes ours back, if it stands; tells the peer if it has room.
  void withdraw(Mesh& mesh, Rank peer, const Status& reason);
  // Both have what they wanted.
  void conclude(Rank peer);
  // How often ranks have gone on without those of a list: the same to all that did. conclude() is each peer's.
  std::uint64_t gone_on(const ExcludedList& list) const;
  void go_on(const ExcludedList& list) { ++gone_on_[list.digest]; }
  // A frame of kind proposal or refusal.
  Status take_in(Rank peer, ReceivedFrame received);

 private:
  Status take_refusal(Rank peer, const Frame& frame);

  std::map<Rank, Pair> pairs_;
  std::map<std::uint64_t, std::uint64_t> gone_on_;  // By the list's digest.
};

}  // namespace tutti
