#include "src/communicator/host/tagged_messages.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "src/base/atomic.h"
#include "src/base/caught.h"
#include "src/bootstrap/secrets.h"
#include "src/communicator/host/join.h"

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

Endpoint unix_endpoint(const Hosts& hosts, Rank rank) {
  return {{}, hidden_name(credentials_of(hosts).key, "messages", rank), SOCK_STREAM};
}

}  // namespace

// A rank of another host is called from the interface that the control connection to it uses.
Result<std::optional<Endpoint>> TaggedMessages::address_of(Rank rank) const {
  Mesh& mesh = control_.membership.mesh;
  if (!mesh.is_remote(rank)) return std::optional(unix_endpoint(mesh.hosts(), rank));
  const std::optional<Address> address = mesh.listener(rank);
  if (!address) return std::optional<Endpoint>();
  return std::optional(Endpoint{seen_from(mesh.connection(rank).interface_name(), *address), "", SOCK_STREAM});
}

// Between hosts, listens at the address of a control connection, which the other hosts reach.
Result<std::vector<Socket>> TaggedMessages::listen() const {
  Mesh& mesh = control_.membership.mesh;
  std::vector<Socket> listeners;
  if (mesh.hosts().ranks() > mesh.remote_ranks().size() + 1)
    listeners.push_back(TUTTI_TRY(listen_at(unix_endpoint(mesh.hosts(), control_.membership.rank))));
  if (mesh.any_remote()) {
    Address address = TUTTI_TRY(local_address(mesh.connection(mesh.remote_ranks().front()).socket()));
    address.port = 0;
    listeners.push_back(TUTTI_TRY(listen_at({address, "", SOCK_STREAM})));
    mesh.report_listener(TUTTI_TRY(local_address(listeners.back())));
  }
  return listeners;
}

MessageMembership TaggedMessages::membership() const {
  const Membership& own = control_.membership;
  MessageMembership membership;
  membership.rank = own.rank;
  membership.ranks = own.ranks;
  membership.name = own.name();
  membership.credentials = credentials_of(own.mesh.hosts());
  membership.protection = protection_of(config());
  membership.is_remote = [this](Rank rank) { return control_.membership.mesh.is_remote(rank); };
  membership.address = [this](Rank rank) { return address_of(rank); };
  membership.failure = [this] { return control_.failures.found("during a message with a tag"); };
  membership.fail = [this](Status status) { return control_.failures.fail(std::move(status)); };
  membership.has_left = [this](Rank rank) {
    return load_acquire(&control_.membership.board.entry(rank).left) != 0 || control_.membership.mesh.has_left(rank);
  };
  return membership;
}

Status TaggedMessages::create() {
  std::shared_ptr<MessageService> service = TUTTI_TRY(MessageService::of_process());
  std::vector<Socket> listeners = TUTTI_TRY(listen());
  auto endpoint = std::make_shared<MessageEndpoint>(membership(), std::move(listeners), *service);
  service->add(endpoint);
  service_ = std::move(service);
  endpoint_ = std::move(endpoint);
  return {};
}

Result<std::shared_ptr<MessageEndpoint>> TaggedMessages::endpoint() {
  const std::lock_guard lock(mutex_);
  const Board& board = control_.membership.board;
  if (board.failed()) return board.failure(control_.membership.rank);
  if (endpoint_ == nullptr && ended_) return refuse_message(control_.membership.name());
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
