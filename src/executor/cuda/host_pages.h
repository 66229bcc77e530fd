// Memory of the host that devices have been shown. A process may show a page once only, whatever the number of its
// ranks and devices, so that the users of each are counted here.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>

#include "src/base/status.h"

namespace tutti {

class HostPages {
 public:
  // Any thread. `bytes` from `memory` on: as many each time, or it fails.
  Status show(std::byte* memory, std::size_t bytes);
  void hide(std::byte* memory);

  static HostPages& of_process();

 private:
  struct Shown {
    std::size_t users = 0;
    std::size_t bytes = 0;
    bool ours = false;  // Else the program had shown them before.
  };
  std::mutex mutex_;
  std::map<std::byte*, Shown> shown_;
};

}  // namespace tutti
