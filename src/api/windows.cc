// Windows: memory of GPUs that all ranks of a communicator may access.
#include "src/api/call_entry.h"
#include "src/api/comm_handle.h"
#include "src/api/errors.h"
#include "src/api/ticket.h"
#include "src/communicator/device/device_backend.h"

namespace tutti {
namespace {

constexpr std::uint64_t kWindowKind = static_cast<std::uint64_t>(HandleKind::window) << 48;

tutti_window window_handle_of(WindowHandle window) {
  return window == 0 ? nullptr : reinterpret_cast<tutti_window>(kWindowKind | window);
}

Result<const CommHandle*> running_handle(tutti_comm comm) {
  const CommHandle* handle = TUTTI_TRY(handle_of(comm));
  if (handle->runner == nullptr) return no_runner(*handle);
  TUTTI_CHECK_OK(
      check_outside_group("windows cannot be registered or deregistered", "registering or deregistering a window"));
  return handle;
}

Result<WindowHandle> register_window(const CommHandle& handle, const WindowBuffer& buffer) {
  DeviceBackend* backend = handle.shared->on_device;
  if (backend == nullptr) return WindowHandle{0};  // Host memory needs no registration.
  auto shown = backend->register_window(buffer);
  if (!shown.ok()) return note_failure(*handle.shared, std::move(shown).status());
  return shown.value();
}

Status deregister(const CommHandle& handle, tutti_window window) {
  DeviceBackend* backend = handle.shared->on_device;
  const WindowHandle known = reinterpret_cast<std::uint64_t>(window) ^ kWindowKind;
  if (backend == nullptr || !backend->has_window(known))
    return invalid_argument(
        "window is not registered with this communicator: it belongs to another one, or was deregistered");
  return note_failure(*handle.shared, backend->deregister_window(known));
}

}  // namespace
}  // namespace tutti

using tutti::CommHandle;
using tutti::guarded;
using tutti::invalid_argument;
using tutti::Status;

extern "C" {

tutti_status tutti_window_register(void* memory, size_t size, uint32_t flags, tutti_comm comm, tutti_window* window) {
  return guarded("tutti_window_register", [&]() -> Status {
    if (window == nullptr) return invalid_argument("window is null: pass a pointer to a tutti_window");
    if (memory == nullptr || size == 0)
      return invalid_argument("memory is null, or size is 0: pass a buffer of 1 byte or more");
    if ((flags & ~std::uint32_t{TUTTI_WINDOW_SYMMETRIC}) != 0)
      return invalid_argument("flags are " + std::to_string(flags) + ": pass 0 or TUTTI_WINDOW_SYMMETRIC");
    const CommHandle* handle = TUTTI_TRY(tutti::running_handle(comm));
    const tutti::Ticket ticket(handle->shared);
    ticket.await();
    const auto guarantee = flags == 0 ? tutti::WindowGuarantee::none : tutti::WindowGuarantee::symmetric;
    *window = tutti::window_handle_of(
        TUTTI_TRY(tutti::register_window(*handle, {static_cast<std::byte*>(memory), size, guarantee})));
    return {};
  });
}

tutti_status tutti_window_deregister(tutti_window window, tutti_comm comm) {
  if (window == nullptr) return tutti_ok;
  return guarded("tutti_window_deregister", [&]() -> Status {
    const CommHandle* handle = TUTTI_TRY(tutti::running_handle(comm));
    const tutti::Ticket ticket(handle->shared);
    ticket.await();
    return tutti::deregister(*handle, window);
  });
}

}  // extern "C"
