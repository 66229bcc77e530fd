// The thread of this process that progresses tagged messages. It exists while there are endpoints, and sleeps while
// nothing happens.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "src/base/service_thread.h"
#include "src/base/socket.h"
#include "src/base/status.h"

namespace tutti {

class MessageEndpoint;

// Thread-safe.
class MessageService {
 public:
  // Returns the service of this process, and starts it if there is none.
  static Result<std::shared_ptr<MessageService>> of_process();
  ~MessageService();

  void add(std::shared_ptr<MessageEndpoint> endpoint);
  // Returns when the thread does not use the endpoint any more. Must not be called from that thread.
  void remove(const MessageEndpoint& endpoint);
  // Makes the thread call watch() and serve() of all endpoints soon.
  void wake();

 private:
  MessageService() = default;
  Status start();
  void run();
  Status progress();
  std::vector<std::shared_ptr<MessageEndpoint>> endpoints();

  std::mutex mutex_;    // Guards endpoints_.
  std::mutex serving_;  // Held by the thread while it uses endpoints, except while it sleeps.
  std::vector<std::shared_ptr<MessageEndpoint>> endpoints_;
  Socket event_;
  std::atomic<bool> stopped_{false};
  std::unique_ptr<LibraryThread> thread_;
};

}  // namespace tutti
