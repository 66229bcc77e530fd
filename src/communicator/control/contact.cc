#include "src/communicator/control/contact.h"

#include <mutex>

namespace tutti {
namespace {

// Held while contacts are released. If two threads release the last users of a connection, the second one finishes it.
std::mutex releasing;

}  // namespace

Contact::Contact(Contact&& other) noexcept = default;

Contact& Contact::operator=(Contact&& other) noexcept {
  Contact taken(std::move(other));
  std::swap(socket_, taken.socket_);
  std::swap(connection_, taken.connection_);
  std::swap(context_, taken.context_);
  return *this;
}

Contact::~Contact() {
  if (is_remote()) connection_->close(context_);
}

void Contact::close_all(std::vector<Contact> contacts) {
  std::vector<std::shared_ptr<TcpConnection>> last;
  {
    const std::lock_guard lock(releasing);
    for (Contact& contact : contacts) {
      if (!contact.is_remote()) continue;
      contact.connection_->close(contact.context_);
      std::shared_ptr<TcpConnection> connection = std::move(contact.connection_);
      if (connection.use_count() == 1) last.push_back(std::move(connection));
    }
  }
  std::vector<TcpConnection*> connections;
  for (const auto& connection : last) connections.push_back(connection.get());
  TcpConnection::finish(connections);
}

}  // namespace tutti
