// Runs all handshakes of a thread concurrently, incoming and outgoing; none can block another. An unauthenticated
// client that is silent, slow or invalid occupies one entry for two seconds.
#pragma once

#include <poll.h>

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/bootstrap/address.h"
#include "src/bootstrap/handshake.h"

namespace tutti {

// Error context of an outgoing call, and its timeout.
struct Connecting {
  std::string purpose;  // "connecting to rank 3"
  Deadline deadline;
};

class Acceptor {
 public:
  // Up to `ranks` handshakes may be pending, in addition to unauthenticated clients.
  explicit Acceptor(Rank self, Rank ranks = 0) : self_(self), ranks_(ranks) {}

  void listen(Socket listener, Role role, const Credentials& credentials);
  // Do not call it between watch() and serve(). Pending handshakes may still complete.
  void stop_listening() { listeners_.clear(); }
  void stop_listening(Role role) {
    std::erase_if(listeners_, [role](const Listener& listener) { return listener.role == role; });
  }
  // Starts the caller's side of a handshake. serve() reports its errors.
  void connect(Handshake handshake, Connecting connecting = {});

  // watch() appends the descriptors to poll. Call serve() with the same vector after poll(). If serve() fails for lack
  // of descriptors, it may be called again; it retries after a while.
  void watch(std::vector<pollfd>& polled);
  Status serve(const std::vector<pollfd>& polled);
  // Time at which serve() must be called even without events.
  Deadline deadline() const;
  // Claimed rank of the last caller that addressed this rank and disconnected without proving that it has the secret.
  std::optional<Rank> unproved() const { return unproved_; }
  // Connections whose handshake is complete.
  std::vector<AcceptedPeer> take() { return std::exchange(accepted_, {}); }

 private:
  struct Listener {
    Socket socket;
    Role role;
    Credentials credentials;
  };
  struct Pending {
    Handshake handshake;
    Deadline deadline;
    std::string purpose;  // Error context of an outgoing call.
  };
  Status accept(const Listener& listener);
  // True: retry at once.
  Result<bool> make_room(Status shortage);
  // True: the handshake is not finished.
  Result<bool> advance(Pending& pending);
  // True: keep waiting. An outgoing call without a timely answer is an error.
  static Result<bool> keep(const Pending& pending);
  bool drop_oldest();
  std::deque<Pending>::iterator oldest_caller();

  Rank self_;
  Rank ranks_;
  std::vector<Listener> listeners_;
  std::deque<Pending> pending_;
  std::vector<AcceptedPeer> accepted_;
  std::optional<Rank> unproved_;
  // Until then no connections are accepted, for lack of descriptors. Only watch() checks whether it has passed, because
  // deadline() must wake up for the listeners that watch() leaves out.
  std::optional<Deadline> paused_;
  std::size_t first_ = 0;    // Index of this object's first entry in the polled vector.
  std::size_t watched_ = 0;  // Number of pending handshakes among these entries.
};

}  // namespace tutti
