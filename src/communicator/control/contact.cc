#include "src/communicator/control/contact.h"

namespace tutti {

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

}  // namespace tutti
