// Cache of freed device memory. Allocating is slow, and freeing may wait for the device. Memory that other processes
// may still write is never reused. The class handles addresses only and does not access the memory.
#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

namespace tutti {

// Not thread-safe.
class FreeList {
 public:
  struct Kind {
    std::size_t bytes = 0;
    bool shared = false;      // Exported as a file: other processes that mapped it keep it after it is freed here.
    bool is_private = false;  // Other devices cannot access it.
    bool for_domain = false;  // Exported by a fabric handle. Then `shared`, too.
    auto operator<=>(const Kind&) const = default;
  };

  // Returns cached memory of exactly this kind, with its old contents; null if there is none.
  std::byte* take(const Kind& kind);
  void keep(std::byte* memory, const Kind& kind) { kept_.emplace(kind, memory); }
  // Withdraws memory from reuse.
  void set_aside(std::byte* memory, const Kind& kind);
  // Returns and forgets all memory that may be freed. Plain memory that was set aside is not among them, because
  // other processes would lose them.
  std::vector<std::byte*> take_freeable();

 private:
  std::multimap<Kind, std::byte*> kept_;
  std::vector<std::byte*> aside_;
};

}  // namespace tutti
