// Sleep of a rank on its word of the board, until a rank of the same host posts something.
#pragma once

#include <cstdint>

#include "src/communicator/membership/membership.h"

namespace tutti {

// Only the thread that runs calls may use it.
class Sleeper {
 public:
  // Shows the other ranks whether heavy_fence() acts on this process.
  explicit Sleeper(const Membership& membership);

  // Returns true if posts of other ranks wake this rank, or would have done so.
  bool armed() const { return load_relaxed(word_) != 0; }
  // Like armed(); with `board`, changes of the board must wake it, too.
  bool armed_for(bool board) const { return armed() && (watches_board_ || !board); }
  // From now on, posts of other ranks wake this rank; with `watches_board`, also changes of the board. The caller must
  // poll all that it waits for between arm() and sleep().
  void arm(bool watches_board);
  // Sleeps if no rank has posted anything since arm(). The time that it has waited so far, `idle_ns`, determines the
  // maximum. May return early; then armed() may still be true, and the caller may poll and sleep again.
  void sleep(std::int64_t idle_ns);
  void disarm() {
    if (armed()) store_relaxed(word_, 0U);
  }

 private:
  bool all_allow_heavy_fence();

  const Board& board_;
  std::uint32_t* const word_;
  bool watches_board_ = false;  // The last arm() included the board.
  bool fenced_ = false;         // There was a heavy_fence() since arm().
  bool all_allow_ = false;      // All ranks of the host allow heavy_fence(). Does not change back.
};

}  // namespace tutti
