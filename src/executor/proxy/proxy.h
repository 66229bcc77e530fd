// The proxy thread of a device rank carries its lanes to and from other hosts, which a device cannot do. The thread
// advances the connections of these lanes, concurrently with other users of the connections. During a call the thread
// polls. After a while without progress the thread sleeps briefly, until a socket is ready or it is time to look for
// posted messages. Between calls the thread sleeps; see sleeps.h for replays of graphs. Without lanes to carry, it only
// watches the connections for failures of peers.
#pragma once

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "src/base/file.h"
#include "src/base/service_thread.h"
#include "transports/tcp/connection.h"

namespace tutti {

struct ProxyDuty {
  // The connections must outlive the proxy.
  std::vector<TcpConnection*> connections;  // Connections of lanes. If there are none, no calls are announced.
  std::vector<TcpConnection*> watched;      // Other connections on which peers report failures.
  // In host memory: number of the last completed call. Written after everything that this call has posted is visible.
  const std::uint32_t* ended = nullptr;
  const std::uint32_t* failed = nullptr;  // In host memory; nonzero after a call has failed, which must be made known.
  // Checks for failures of peers. Called during a call without progress for `still_ns`, occasionally if a graph may
  // have started a call, and after a notification. The death of a peer between calls is detected by the next call or
  // query. Returns false if the communicator has failed; no thread block then waits for the proxy.
  std::function<bool(std::int64_t still_ns)> look;
};

class Proxy {
 public:
  // Starts the thread, which runs near the network interface of the connections, if all use the same one and its
  // location is known.
  static Result<std::unique_ptr<Proxy>> start(ProxyDuty duty);
  ~Proxy();  // Stops the thread; uncarried messages are lost. No effect in a child of fork().
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  // Announces that call `number` is about to be enqueued, after all others. Not thread-safe; same for expect_graph().
  void expect(std::uint32_t number);
  // Announces that a call is captured. Replays of the graph begin at any time without notice, until all copies of the
  // result are destroyed. The result may outlive the proxy.
  std::shared_ptr<void> expect_graph();

  // Stops calls of ProxyDuty::look and allows longer sleeps. Waits for a call in progress.
  void stop_polling();

  // Number of polls so far.
  std::uint64_t rounds() const { return rounds_.load(std::memory_order_relaxed); }

 private:
  explicit Proxy(ProxyDuty duty) : duty_(std::move(duty)), all_(duty_.connections) {
    all_.insert(all_.end(), duty_.watched.begin(), duty_.watched.end());
  }

  void work();
  void move_near_nic() const;
  void wake();
  bool advance_connections();
  bool expects_calls() const;
  std::uint64_t notes() const;
  void check_peers();
  bool graphs_exist() const { return graphs_.use_count() > 1; }
  void sleep(std::int64_t longest_ns);

  ProxyDuty duty_;
  std::vector<TcpConnection*> all_;  // With those that are watched.
  File event_;
  std::mutex looking_;
  std::atomic<std::uint64_t> reported_{0};  // Calls of expect() and similar notifications.
  std::atomic<std::uint32_t> expected_{0};
  const std::shared_ptr<void> graphs_ = std::make_shared<char>();  // Shared with graphs that contain calls.
  std::atomic<bool> lost_{false}, ends_{false}, sleeps_{false};
  std::atomic<std::uint64_t> rounds_{0};

  // ---- Used by the thread only ----
  std::vector<pollfd> polled_;
  bool failed_ = false;
  std::uint64_t notes_ = 0;  // Notifications at the last look.
  std::int64_t moved_ns_ = 0, looked_ns_ = 0, sleep_ns_ = 0;

  std::unique_ptr<LibraryThread> thread_;
};

}  // namespace tutti
