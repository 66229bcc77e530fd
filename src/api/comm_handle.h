// State behind a communicator's handle: the shared state of the communicator, and the options of calls through this
// handle.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "src/api/residuals.h"
#include "src/base/caught.h"
#include "src/base/handle_table.h"
#include "src/base/no_cancellation.h"
#include "src/communicator/communicator.h"
#include "tutti/tutti.h"

namespace tutti {

// A pre-multiplied sum, identified by its number.
struct PreMulSum {
  tutti_reduction number = 0;
  DataType type = DataType::float32;
  double scalar = 1;
  double imaginary_scalar = 0;
  std::int64_t integer_scalar = 1;
  const std::byte* factor = nullptr;  // Address of the scalar, read when a call runs. Null: use the fields above.
};
inline constexpr tutti_reduction kFirstPreMulSum = 256;

// Shared by the handles of one communicator and by its pending work in streams.
struct SharedComm {
  // Waits until no other thread asks for the failure.
  ~SharedComm() { const std::lock_guard unused(in_use); }

  std::unique_ptr<Communicator> communicator;  // Null while the ranks join.
  std::uint32_t abort = 0;                     // Nonzero: stop joining.
  // Batches in streams that are not complete. While nonzero, all other calls take a ticket too. At least 1 on a device.
  std::atomic<std::uint64_t> queued = 0;
  bool has_residuals = false;          // Calls search `residuals`.
  DeviceBackend* on_device = nullptr;  // Of `communicator`, if its buffers lie on a device.
  std::vector<PreMulSum> reductions;
  std::vector<Residual> residuals;
  std::vector<tutti_comm> views;
  std::string launcher;
  std::shared_mutex in_use;            // Held shared by threads that ask for the failure.
  std::mutex failure_mutex;            // Guards `failure`.
  std::string failure;                 // Text of tutti_last_error; constant once set.
  std::atomic<bool> reported = false;  // The caller has received the communicator's failure.
};

// Returns `status`. If the communicator has failed with this error, records that the caller has received the failure;
// another error, such as an invalid argument, records nothing. Throws nothing.
inline Status note_failure(SharedComm& shared, Status status) {
  if (status.ok()) return status;
  const NoCancellation until_return;
  if (caught([&] { return shared.communicator->failure(); }).code() == status.code()) shared.reported = true;
  return status;
}

struct CommHandle {                              // Begins with the fields that every call reads.
  std::atomic<Communicator*> runner = nullptr;   // Null during creation and after finalize.
  const CommunicatorOptions* options = nullptr;  // Null: the options of the communicator.
  Rank rank = 0;
  Rank ranks = 0;
  std::shared_ptr<SharedComm> shared;
  CommunicatorOptions own_options;  // Options of a view.
  bool is_view = false;
};

using CommHandles = HandleTable<CommHandle, HandleKind::communicator>;

// Return the error of a `comm` that is not a valid handle, and of a handle that cannot run calls.
[[gnu::cold]] Status no_communicator(tutti_comm comm);
[[gnu::cold]] Status no_runner(const CommHandle& handle);

// Returns the CommHandle of `comm`, or an error if `comm` is not a valid handle.
inline Result<CommHandle*> handle_of(tutti_comm comm) {
  CommHandle* handle = CommHandles::instance().find(comm);
  if (handle == nullptr) return no_communicator(comm);
  return handle;
}

const CommunicatorOptions& options_of(const CommHandle& handle);
// Fails if `options` select other memory than the communicator of `handle` uses: derived communicators use the same.
Status check_same_memory(const CommHandle& handle, const CommunicatorOptions& options);

// Merges `options` over `inherited`, whose values replace unset fields.
Result<CommunicatorOptions> options_over(const CommunicatorOptions& inherited, const tutti_comm_options* options);

}  // namespace tutti
