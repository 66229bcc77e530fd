// The thread that carries the lanes of a rank on a device to and from other hosts, since a device cannot: it runs the
// connections on which those lanes have halves, beside whoever else uses these. While a call is under way it polls;
// when nothing has moved for a while it naps, until a socket wakes it, or to look whether thread blocks have posted;
// without a call it sleeps.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "src/base/owned.h"
#include "src/base/service_thread.h"
#include "transports/tcp/connection.h"

namespace tutti {

struct ProxyDuty {
  std::vector<TcpConnection*> connections;  // They outlive the proxy.
  // In memory of the host: the number of the last call that is done, written behind it, and seen when all that it has
  // posted is.
  const std::uint32_t* ended = nullptr;
  const std::uint32_t* failed = nullptr;  // The same; not 0: a call has ended in a failure, which is to be made known.
  // Looks for news of the peers, and whether they live. Asked when a call is under way in which nothing has moved for
  // so long, now and then where a graph may have brought one, and when a note has come. A peer that dies while there is
  // no call is found by the next, or when the program asks. False: the communicator has failed, and no thread block
  // waits for the proxy.
  std::function<bool(std::int64_t still_ns)> look;
};

class Proxy {
 public:
  // A thread that runs near the network interface of the connections, if all have the same and the system tells where
  // it is.
  static Result<std::unique_ptr<Proxy>> start(ProxyDuty duty);
  ~Proxy();  // What has not been carried by then is not. Not in a child of fork().
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  // Call `number` is about to be enqueued, behind all others. A thread at a time, as the next.
  void expect(std::uint32_t number);
  // Calls may come at any time, of which nobody tells: a graph has been captured.
  void expect_graphs();

  // From now on it does not look any more, and naps longer. Waits while it does.
  void look_no_more();

  // How often it has polled.
  std::uint64_t rounds() const { return rounds_.load(std::memory_order_relaxed); }

 private:
  using Bell = Owned<int, ::close, -1>;

  explicit Proxy(ProxyDuty duty) : duty_(std::move(duty)) {}

  void work();
  void settle() const;
  void wake();
  bool carry();
  bool expects_calls() const;
  std::uint64_t notes() const;
  void look_around();
  std::int64_t longest_nap_ns(bool busy) const;
  void sleep(std::int64_t longest_ns);

  ProxyDuty duty_;
  Bell bell_;
  std::mutex looking_;
  std::atomic<std::uint64_t> reported_{0};  // Times that expect() and the like were called.
  std::atomic<std::uint32_t> expected_{0};
  std::atomic<bool> graphs_{false}, lost_{false}, ends_{false}, sleeps_{false};
  std::atomic<std::uint64_t> rounds_{0};

  // ---- Of the thread ----
  std::vector<pollfd> polled_;
  bool failed_ = false;
  std::uint64_t notes_ = 0;  // At the last look.
  std::int64_t moved_ns_ = 0, looked_ns_ = 0, nap_ns_ = 0;

  std::unique_ptr<ServiceThread> thread_;
};

}  // namespace tutti
