// All handshakes of a thread at once: it accepts and calls, and none of them can hold up another. A stranger that is
// silent, slow or talks nonsense costs one entry for two seconds.
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

// What a caller says if its call comes to nothing, and how long it waits for an answer.
struct Calling {
  std::string purpose;  // "calling rank 3"
  Deadline deadline;
};

class Greeter {
 public:
  // As many as `ranks` may call or be called at once, beside strangers.
  explicit Greeter(Rank self, Rank ranks = 0) : self_(self), ranks_(ranks) {}

  void listen(Socket listener, Role role, const Credentials& credentials);
  // Neither between watch() and serve(). Those whose handshake is under way may still come through.
  void stop_listening() { listeners_.clear(); }
  void stop_listening(Role role) {
    std::erase_if(listeners_, [role](const Listener& listener) { return listener.role == role; });
  }
  // The caller's handshake; what goes wrong with it is serve()'s error.
  void call(Handshake handshake, Calling calling = {});

  // Appends what to poll for; then serve() what poll found, given the same vector. After a failure for want of
  // descriptors it may be served on: it tries again in a while.
  void watch(std::vector<pollfd>& polled);
  Status serve(const std::vector<pollfd>& polled);
  // When it needs serve() even if nothing happens.
  Deadline deadline() const;
  // The last caller that meant us, and left without a proof that it holds our secret: the rank that it said it was.
  std::optional<Rank> unproved() const { return unproved_; }
  // Connections whose handshake is complete.
  std::vector<Greeted> take() { return std::exchange(greeted_, {}); }

 private:
  struct Listener {
    Socket socket;
    Role role;
    Credentials credentials;
  };
  struct Pending {
    Handshake handshake;
    Deadline deadline;
    std::string purpose;  // Of a call of ours.
  };
  Status accept(const Listener& listener);
  // Whether to try again at once.
  Result<bool> make_room(Status shortage);
  // Whether it goes on.
  Result<bool> advance(Pending& pending);
  // Whether it waits on; a call of ours that nobody has answered is an error.
  static Result<bool> keep(const Pending& pending);
  bool drop_oldest();
  std::deque<Pending>::iterator oldest_caller();

  Rank self_;
  Rank ranks_;
  std::vector<Listener> listeners_;
  std::deque<Pending> pending_;
  std::vector<Greeted> greeted_;
  std::optional<Rank> unproved_;
  // Until then it accepts nobody, for want of descriptors. Only watch() sees that it has passed: what it leaves out of
  // the poll is what deadline() must wake up for.
  std::optional<Deadline> paused_;
  std::size_t first_ = 0;    // Of our entries in the vector that is polled,
  std::size_t watched_ = 0;  // and how many of them are pending handshakes.
};

}  // namespace tutti
