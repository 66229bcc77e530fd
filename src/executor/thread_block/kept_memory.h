// What a device has been given back and keeps: for the next who asks for as much, since to take memory is slow and to
// free it waits for the device, or, where others may still write, for nobody. It knows addresses, and touches no
// memory.
#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

namespace tutti {

// A thread at a time.
class KeptMemory {
 public:
  struct Kind {
    std::size_t bytes = 0;
    bool shared = false;  // By a file: other processes that have opened it have it still when it is freed here.
    auto operator<=>(const Kind&) const = default;
  };

  // Memory of just this kind, as it was left; null: there is none.
  std::byte* take(const Kind& kind);
  void keep(std::byte* memory, const Kind& kind) { kept_.emplace(kind, memory); }
  // Is never taken again.
  void set_aside(std::byte* memory, const Kind& kind);
  // All that may be freed, which it forgets: not what others would lose.
  std::vector<std::byte*> give_up();

 private:
  std::multimap<Kind, std::byte*> kept_;
  std::vector<std::byte*> aside_;
};

}  // namespace tutti
