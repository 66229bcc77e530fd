// Host memory registered with CUDA. A process may register a page once only, whatever its number of ranks and devices,
// so the users are counted.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>

#include "src/base/status.h"

namespace tutti {

class HostPages {
 public:
  // Thread-safe. Registers `bytes` from `memory` on. Repeated calls for the same address must pass the same size;
  // others fail.
  Status register_pages(std::byte* memory, std::size_t bytes);
  void unregister_pages(std::byte* memory);

  static HostPages& of_process();

 private:
  struct Registered {
    std::size_t users = 0;
    std::size_t bytes = 0;
    bool ours = false;  // False: the program registered the pages itself.
  };
  std::mutex mutex_;
  std::map<std::byte*, Registered> registered_;
};

}  // namespace tutti
