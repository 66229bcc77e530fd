#include "src/api/joining.h"

#include "src/api/on_device.h"

namespace tutti {
namespace {

Result<tutti_comm> insert(std::shared_ptr<SharedComm> shared, const RankAndSize& rank_and_size) {
  auto handle = std::make_unique<CommHandle>();
  handle->rank = rank_and_size.rank;
  handle->ranks = rank_and_size.ranks;
  handle->runner = shared->communicator.get();
  handle->shared = std::move(shared);
  return static_cast<tutti_comm>(TUTTI_TRY(CommHandles::instance().insert(std::move(handle))));
}

}  // namespace

Result<tutti_comm> admit(std::unique_ptr<Communicator> communicator) {
  auto shared = std::make_shared<SharedComm>();
  const RankAndSize rank_and_size = {communicator->rank(), communicator->ranks()};
  shared->communicator = std::move(communicator);
  note_device(*shared);
  return insert(std::move(shared), rank_and_size);
}

Status join(const RankAndSize& rank_and_size, const MakeCommunicator& make, tutti_comm* comm, std::string launcher) {
  const auto shared = std::make_shared<SharedComm>();
  shared->launcher = std::move(launcher);
  const tutti_comm handle = TUTTI_TRY(insert(shared, rank_and_size));
  __atomic_store_n(comm, handle, __ATOMIC_RELEASE);
  auto made = caught([&] { return make(&shared->abort); });
  if (!made.ok()) {
    __atomic_store_n(comm, nullptr, __ATOMIC_RELEASE);
    CommHandles::instance().remove(handle);
    return std::move(made).status();
  }
  CommHandles::instance().visit(handle, [&](CommHandle& found) {
    shared->communicator = std::move(made).value();
    note_device(*shared);
    found.runner = shared->communicator.get();
    if (shared->abort != 0) shared->communicator->abort();  // Set after `make` last read it.
  });
  return {};
}

}  // namespace tutti
