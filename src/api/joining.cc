#include "src/api/joining.h"

#include "src/api/on_device.h"

namespace tutti {
namespace {

Result<tutti_comm> insert(std::shared_ptr<Membership> membership, const Seat& seat) {
  auto door = std::make_unique<Door>();
  door->rank = seat.rank;
  door->ranks = seat.ranks;
  door->runner = membership->communicator.get();
  door->membership = std::move(membership);
  void* handle = TUTTI_TRY(Doors::instance().insert(std::move(door)));
  return static_cast<tutti_comm>(handle);
}

}  // namespace

Result<tutti_comm> admit(std::unique_ptr<Communicator> communicator, std::string launcher) {
  auto membership = std::make_shared<Membership>();
  const Seat seat = {communicator->rank(), communicator->ranks()};
  membership->communicator = std::move(communicator);
  note_device(*membership);
  membership->launcher = std::move(launcher);
  return insert(std::move(membership), seat);
}

Status join(const Seat& seat, const MakeCommunicator& make, tutti_comm* comm) {
  const auto membership = std::make_shared<Membership>();
  const tutti_comm handle = TUTTI_TRY(insert(membership, seat));
  __atomic_store_n(comm, handle, __ATOMIC_RELEASE);
  auto made = caught([&] { return make(&membership->abort); });
  if (!made.ok()) {
    __atomic_store_n(comm, nullptr, __ATOMIC_RELEASE);
    Doors::instance().remove(handle);
    return std::move(made).status();
  }
  Doors::instance().visit(handle, [&](Door& door) {
    membership->communicator = std::move(made).value();
    note_device(*membership);
    door.runner = membership->communicator.get();
    if (membership->abort != 0) membership->communicator->abort();  // It came after the last look.
  });
  return {};
}

}  // namespace tutti
