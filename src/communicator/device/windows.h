// Memory that each rank of a communicator has shown to the others, so that their thread blocks read and write it where
// it lies: in other processes, and on other devices. All ranks show and withdraw theirs in the same order, so that they
// number windows alike.
#pragma once

#include <cstdint>
#include <vector>

#include "src/communicator/peers/peer_set.h"

namespace tutti {

// Guarantee of a program for its calls. symmetric: the buffers of a collective are in such windows on all ranks or
// on none.
enum class WindowPromise : std::uint8_t { none, symmetric };

struct WindowBuffer {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  WindowPromise promise = WindowPromise::none;
};

// A window as its owner knows it, in all of the process; 0: none.
using WindowHandle = std::uint64_t;

// A thread at a time.
class DeviceWindows {
 public:
  // Outlived by both, and by what use() gives.
  DeviceWindows(Communicator& control, const PeerSet& peers) : control_(control), peers_(peers) {}

  // Where thread blocks look parts up: a row of ranks for each number, on the device, and zeroed.
  void use(WindowPart* parts) { parts_ = parts; }

  // Blocks until all ranks have come. 0 on all ranks where one cannot show its buffer, or does not promise, or where
  // another does not reach it.
  Result<WindowHandle> show(const WindowBuffer& own);
  bool knows(WindowHandle handle) const { return number_of(handle) != 0; }
  // Closes what this rank has opened for the window; no call of its own uses it any more. If each rank is in a process
  // of its own, blocks until all have done so: then the memory may be freed.
  Status withdraw(WindowHandle handle);
  // Closes everything: no call may follow.
  void let_go();

  bool any() const { return count_ > 0; }
  // Number of one that holds all of it; 0: there is none.
  std::uint32_t find(const std::byte* memory, std::size_t bytes) const;

 private:
  struct WindowInfo;
  struct Window {
    WindowHandle handle = 0;  // 0: the number is free.
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
    std::vector<std::byte*> opened;  // Windows of other processes.
  };
  WindowInfo info_of(const WindowBuffer& own) const;
  std::uint32_t number_of(WindowHandle handle) const;
  std::uint32_t free_number();  // 0: there is none.
  // Brings every rank's part within reach.
  Status open(const std::vector<WindowInfo>& infos, std::uint32_t number);
  void close(std::uint32_t number);
  Status await_all();

  Communicator& control_;
  const PeerSet& peers_;
  WindowPart* parts_ = nullptr;
  std::vector<Window> windows_{1};  // By number; 0 is none.
  std::uint32_t count_ = 0;
};

}  // namespace tutti
