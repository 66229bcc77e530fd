// Memory of GPUs that all ranks of a communicator reach.
#include "src/api/call_entry.h"
#include "src/api/door.h"
#include "src/api/errors.h"
#include "src/api/ticket.h"
#include "src/communicator/device/device_communicator.h"

namespace tutti {
namespace {

// No address, as other handles are none.
constexpr std::uint64_t kWindowKind = std::uint64_t{0x71c4} << 48;

tutti_window handle_of(WindowHandle window) {
  return window == 0 ? nullptr : reinterpret_cast<tutti_window>(kWindowKind | window);
}

Result<const Door*> running_door(tutti_comm comm) {
  const Door* door = TUTTI_TRY(door_of(comm));
  if (door->runner == nullptr) return no_runner(*door);
  TUTTI_CHECK_OK(check_outside_group("given or deprived of windows"));
  return door;
}

Result<WindowHandle> show(const Door& door, const WindowBuffer& buffer) {
  DeviceCommunicator* communicator = door.shared->on_device;
  if (communicator == nullptr) return WindowHandle{0};  // On host memory buffers are found without.
  auto shown = communicator->show_window(buffer);
  if (!shown.ok()) return telling(*door.shared, std::move(shown).status());
  return shown.value();
}

Status withdraw(const Door& door, tutti_window window) {
  DeviceCommunicator* communicator = door.shared->on_device;
  const WindowHandle known = reinterpret_cast<std::uint64_t>(window) ^ kWindowKind;
  if (communicator == nullptr || !communicator->has_window(known))
    return invalid_argument("window is none of this communicator: it was registered with another, or is gone");
  return telling(*door.shared, communicator->withdraw_window(known));
}

}  // namespace
}  // namespace tutti

using tutti::Door;
using tutti::guarded;
using tutti::invalid_argument;
using tutti::Status;

extern "C" {

tutti_status tutti_window_register(void* memory, size_t size, uint32_t flags, tutti_comm comm, tutti_window* window) {
  return guarded("tutti_window_register", [&]() -> Status {
    if (window == nullptr) return invalid_argument("window is null: pass where to put the handle");
    if (memory == nullptr || size == 0) return invalid_argument("memory is null, or size is 0");
    if ((flags & ~std::uint32_t{TUTTI_WINDOW_SYMMETRIC}) != 0)
      return invalid_argument("flags are " + std::to_string(flags) + ": pass 0 or TUTTI_WINDOW_SYMMETRIC");
    const Door* door = TUTTI_TRY(tutti::running_door(comm));
    const tutti::Ticket turn(door->shared);
    TUTTI_CHECK_OK(tutti::telling(*door->shared, turn.await()));
    const auto promise = flags == 0 ? tutti::WindowPromise::none : tutti::WindowPromise::symmetric;
    *window = tutti::handle_of(TUTTI_TRY(tutti::show(*door, {static_cast<std::byte*>(memory), size, promise})));
    return {};
  });
}

tutti_status tutti_window_deregister(tutti_window window, tutti_comm comm) {
  if (window == nullptr) return tutti_ok;
  return guarded("tutti_window_deregister", [&]() -> Status {
    const Door* door = TUTTI_TRY(tutti::running_door(comm));
    const tutti::Ticket turn(door->shared);
    TUTTI_CHECK_OK(tutti::telling(*door->shared, turn.await()));
    return tutti::withdraw(*door, window);
  });
}

}  // extern "C"
