// State behind a communicator's handle: the shared state of the communicator, and the options of calls through this
// handle.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/api/handles.h"
#include "src/api/residuals.h"
#include "src/base/caught.h"
#include "src/base/no_cancellation.h"
#include "src/communicator/communicator.h"
#include "tutti/tutti.h"

namespace tutti {

// A pre-multiplied sum, by its number.
struct PreMulSum {
  tutti_reduction number = 0;
  DataType type = DataType::float32;
  double scalar = 1;
  std::int64_t integer_scalar = 1;
  const std::byte* factor = nullptr;  // Where the scalar is read when a call runs. Null: it is the above.
};
inline constexpr tutti_reduction kFirstPreMulSum = 256;

// Shared by the handles to one communicator and by the work that waits for it in streams.
struct SharedComm {
  std::unique_ptr<Communicator> communicator;  // Null while the ranks join.
  std::uint32_t abort = 0;                     // Not 0: stop joining.
  // Batches in streams that are not done: others then have to line up. On a device there always is one.
  std::atomic<std::uint64_t> queued = 0;
  bool has_residuals = false;               // Calls look for theirs.
  DeviceCommunicator* on_device = nullptr;  // The communicator, if its buffers lie on one.
  std::vector<PreMulSum> reductions;
  std::vector<Residual> residuals;
  std::vector<tutti_comm> views;
  std::string launcher;
  std::string failure;                 // Text of tutti_last_error; it does not change once set.
  std::atomic<bool> reported = false;  // The caller knows that the communicator has failed.
};

// Returns `status`. If it is an error because the communicator has failed, and not only because of a wrong argument,
// records that the caller knows of the failure. Throws nothing.
inline Status note_failure(SharedComm& shared, Status status) {
  if (status.ok()) return status;
  const NoCancellation until_return;
  if (!caught([&] { return shared.communicator->failure(); }).ok()) shared.reported = true;
  return status;
}

struct CommHandle {                              // Fields that every call reads come first.
  std::atomic<Communicator*> runner = nullptr;   // Null while it is being created, and once it is finalized.
  const CommunicatorOptions* options = nullptr;  // Null: the communicator's own.
  Rank rank = 0;
  Rank ranks = 0;
  std::shared_ptr<SharedComm> shared;
  CommunicatorOptions own_options;  // Options of a view.
  bool is_view = false;
};

using CommHandles = HandleTable<CommHandle, HandleKind::communicator>;

// Why `comm` is no communicator; why the door's cannot run calls.
[[gnu::cold]] Status no_communicator(tutti_comm comm);
[[gnu::cold]] Status no_runner(const CommHandle& handle);

// The door of a handle that is one.
inline Result<CommHandle*> handle_of(tutti_comm comm) {
  CommHandle* handle = CommHandles::instance().find(comm);
  if (handle == nullptr) return no_communicator(comm);
  return handle;
}

const CommunicatorOptions& options_of(const CommHandle& handle);
// Fails where what comes out of a communicator would lie elsewhere.
Status check_same_memory(const CommHandle& handle, const CommunicatorOptions& options);

// The options of C over those that unset ones are inherited from.
Result<CommunicatorOptions> options_over(const CommunicatorOptions& inherited, const tutti_comm_options* options);

}  // namespace tutti
