// Messages with tags of a rank: creates the endpoint at the first use, and ends it with the communicator.
#pragma once

#include <memory>
#include <mutex>

#include "src/communicator/membership/control_plane.h"
#include "src/messages/endpoint.h"
#include "src/messages/service.h"

namespace tutti {

// Thread-safe.
class TaggedMessages {
 public:
  explicit TaggedMessages(ControlPlane& control) : control_(control) {}
  ~TaggedMessages() { close(); }

  // Returns the endpoint. The first call creates it, and from then on this rank accepts connections for messages.
  Result<std::shared_ptr<MessageEndpoint>> endpoint();
  // See MessageEndpoint. Without an endpoint, they only prevent its creation.
  void finish();
  void close();

 private:
  Status create();
  struct Listening {
    std::vector<Socket> sockets;
    std::optional<Address> address;  // For ranks of other hosts.
  };
  MessageMembership membership(const std::optional<Address>& address) const;
  Result<std::optional<SocketAddress>> address_of(Rank rank) const;
  Result<Listening> listen() const;

  ControlPlane& control_;
  std::mutex mutex_;
  std::shared_ptr<MessageService> service_;  // Outlives the endpoint's use of it.
  std::shared_ptr<MessageEndpoint> endpoint_;
  bool ended_ = false;
};

}  // namespace tutti
