#include "src/communicator/host/tagged_messages.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "src/base/atomic.h"
#include "src/base/caught.h"
#include "src/base/log.h"
#include "src/bootstrap/secrets.h"
#include "src/communicator/joining/join.h"
#include "src/messages/errors.h"
#include "transports/tcp/interface.h"

namespace tutti {
namespace {

// Sub-communicators inherit the secret of their parent, so their id is part of the key.
Credentials credentials_of(const Hosts& hosts) {
  Credentials credentials;
  credentials.key = digest(hosts.secret(), {bytes_of("messages"), bytes_of(hosts.id())});
  const Digest id = digest(credentials.key, {bytes_of("communicator")});
  std::copy_n(id.begin(), credentials.communicator.size(), credentials.communicator.begin());
  return credentials;
}

SocketAddress unix_endpoint(const Hosts& hosts, Rank rank) {
  return {{}, hidden_name(credentials_of(hosts).key, "messages", rank), SOCK_STREAM};
}

}  // namespace

// A rank of another host is called from the interface that the control connection to it uses.
Result<std::optional<SocketAddress>> TaggedMessages::address_of(Rank rank) const {
  Mesh& mesh = control_.membership.mesh;
  if (!mesh.is_remote(rank)) return std::optional(unix_endpoint(mesh.hosts(), rank));
  const std::optional<Address> address = mesh.listener(rank);
  if (!address) return std::optional<SocketAddress>();
  return std::optional(
      SocketAddress{seen_from(interface_name(mesh.connection(rank).socket()), *address), "", SOCK_STREAM});
}

// Between hosts, listens at the address at which this rank accepted control connections. Without one, one process
// emulates the hosts.
Result<TaggedMessages::Listening> TaggedMessages::listen() const {
  const Mesh& mesh = control_.membership.mesh;
  Listening listening;
  if (mesh.hosts().ranks() > mesh.remote_ranks().size() + 1)
    listening.sockets.push_back(TUTTI_TRY(listen_at(unix_endpoint(mesh.hosts(), control_.membership.rank))));
  if (mesh.any_remote()) {
    Address address = mesh.hosts().own_address().value_or(loopback_address());
    address.port = 0;
    listening.sockets.push_back(TUTTI_TRY(listen_at({address, "", SOCK_STREAM})));
    listening.address = TUTTI_TRY(local_address(listening.sockets.back()));
    log(LogLevel::trace, "accepts connections for tagged messages at %s", describe(*listening.address).c_str());
  }
  return listening;
}

MessageMembership TaggedMessages::membership(const std::optional<Address>& address) const {
  const Membership& own = control_.membership;
  MessageMembership membership;
  membership.rank = own.rank;
  membership.ranks = own.ranks;
  membership.name = own.name();
  membership.credentials = credentials_of(own.mesh.hosts());
  membership.protection = protection_of(config());
  membership.is_remote = [this](Rank rank) { return control_.membership.mesh.is_remote(rank); };
  membership.address = [this](Rank rank) { return address_of(rank); };
  if (address) {
    membership.report_address = [this, address = *address, reported = false]() mutable {
      Mesh& mesh = control_.membership.mesh;
      if (!std::exchange(reported, true)) mesh.report_listener(address);
      return mesh.drained();
    };
  }
  membership.failure = [this] { return control_.failures.found("during a message with a tag"); };
  membership.fail = [this](Status status) { return control_.failures.fail(std::move(status)); };
  membership.has_left = [this](Rank rank) {
    return load_acquire(&control_.membership.board.entry(rank).left) != 0 || control_.membership.mesh.has_left(rank);
  };
  return membership;
}

Status TaggedMessages::create() {
  std::shared_ptr<MessageService> service = TUTTI_TRY(MessageService::of_process());
  Listening listening = TUTTI_TRY(listen());
  auto endpoint =
      TUTTI_TRY(MessageEndpoint::create(membership(listening.address), std::move(listening.sockets), *service));
  service->add(endpoint);
  service_ = std::move(service);
  endpoint_ = std::move(endpoint);
  return {};
}

Result<std::shared_ptr<MessageEndpoint>> TaggedMessages::endpoint() {
  const std::lock_guard lock(mutex_);
  const Board& board = control_.membership.board;
  if (board.failed()) return board.failure(control_.membership.rank);
  if (endpoint_ == nullptr && ended_) return message_after_end(control_.membership.name());
  if (endpoint_ == nullptr) TUTTI_CHECK_OK(caught([this] { return create(); }));
  return endpoint_;
}

// finish() and close() wait for the service thread, whose callbacks may call endpoint(), so they do not hold the lock.
void TaggedMessages::finish() {
  std::shared_ptr<MessageEndpoint> endpoint;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    endpoint = endpoint_;
  }
  if (endpoint != nullptr) endpoint->finish();
}

void TaggedMessages::close() {
  std::shared_ptr<MessageService> service;  // Outlives the endpoint's use of it.
  std::shared_ptr<MessageEndpoint> endpoint;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    service = std::exchange(service_, nullptr);
    endpoint = std::exchange(endpoint_, nullptr);
  }
  if (endpoint != nullptr) endpoint->close();
}

}  // namespace tutti
