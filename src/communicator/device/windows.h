// Memory that all ranks of a communicator have registered, so that thread blocks of peers access it in place, also from
// other processes and devices. All ranks register and withdraw windows in the same order, so window numbers agree.
#pragma once

#include <cstdint>
#include <vector>

#include "src/communicator/peers/peer_set.h"

namespace tutti {

// Guarantee of the program. symmetric: each collective has its buffers in windows registered with this promise on all
// ranks or on none.
enum class WindowPromise : std::uint8_t { none, symmetric };

struct WindowBuffer {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  WindowPromise promise = WindowPromise::none;
};

// Identifies a window of this rank within the process; 0: none.
using WindowHandle = std::uint64_t;

// Not thread-safe.
class DeviceWindows {
 public:
  // `control`, `peers` and the table given to use() must outlive this object.
  DeviceWindows(Communicator& control, const PeerSet& peers) : control_(control), peers_(peers) {}

  // Sets the table that thread blocks use: for each window number, one entry per rank. It is in device memory, and
  // zeroed.
  void use(WindowPart* parts) { parts_ = parts; }

  // Collective: registers `own` as this rank's buffer of a new window. Returns 0 on all ranks if any rank cannot share
  // its buffer, does not give the promise, or cannot access a peer's buffer.
  Result<WindowHandle> show(const WindowBuffer& own);
  bool knows(WindowHandle handle) const { return number_of(handle) != 0; }
  // Closes the peers' buffers of the window, which no later call of this rank may use. If each rank has its own
  // process, blocks until all ranks have done so; the memory may then be freed.
  Status withdraw(WindowHandle handle);
  // Closes all windows. No call may follow.
  void release_all();

  bool any() const { return count_ > 0; }
  // Returns the number of a window that contains the whole range; 0: there is none.
  std::uint32_t find(const std::byte* memory, std::size_t bytes) const;

 private:
  struct WindowInfo;
  struct Window {
    WindowHandle handle = 0;  // 0: the number is free.
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
    std::vector<std::byte*> opened;  // Buffers of other processes that this rank has open.
  };
  WindowInfo info_of(const WindowBuffer& own) const;
  std::uint32_t number_of(WindowHandle handle) const;
  std::uint32_t free_number();  // 0: there is none.
  // Opens the buffers of all ranks and uploads their addresses.
  Status open(const std::vector<WindowInfo>& infos, std::uint32_t number);
  void close(std::uint32_t number);
  Status await_all();

  Communicator& control_;
  const PeerSet& peers_;
  WindowPart* parts_ = nullptr;
  std::vector<Window> windows_{1};  // By number; number 0 is unused.
  std::uint32_t count_ = 0;
};

}  // namespace tutti
