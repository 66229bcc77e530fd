// Notifications between ranks of different hosts, which do not see each other's board: calls, invalid calls, waits,
// failures, and the end of a rank's calls.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "src/communicator/membership/membership.h"

namespace tutti {

// Thread-safe, except poll_before_call().
class Notifications {
 public:
  explicit Notifications(Membership& membership) : membership_(membership) {}

  // Copies received notifications to the board of this host. Does nothing while another thread does so.
  void poll();
  // Checks for failures before a call. A late rank, or one that only sends, does not wait and would not detect them
  // otherwise. Each check is a system call, so ranks in a fast sequence of calls skip most of them. Only the thread
  // that runs calls may use it.
  Status poll_before_call();
  // Sends the failure of the communicator to the other hosts, if this rank has found it. Waits at most 100 ms until it
  // is sent.
  void report_failure();
  // Asks the ranks of other hosts for which rank they wait. Removes their waits from the board until poll() copies the
  // answers to it.
  void request_waits();
  // Sends the wait of this rank to the ranks that have asked for it since the last call.
  void answer_wait_requests(const Wait& wait);
  // Sends the last call of this rank; for `leaving`, its last kCallHistory calls.
  void report_calls(NotificationKind kind);
  // Shows an invalid call of this rank, which peers may wait for, to all ranks. `text`: function and reason.
  void report_rejection(RejectedCall call, const std::string& text);
  // Sends the last call of this rank if it is the first one since an invalid call, which no longer holds up the peers.
  // Throws nothing.
  void report_correction();

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  Membership& membership_;
  std::mutex polling_;
  std::vector<Rank> wait_requests_;  // Ranks that have asked for the wait of this rank. Guarded by polling_.
  std::int64_t received_ns_ = 0;     // Time of the last poll before a call.
  // Number of collectives before the last invalid call that was sent; kNone: a later collective was sent, too.
  std::atomic<std::uint64_t> rejected_after_ = kNone;
};

}  // namespace tutti
