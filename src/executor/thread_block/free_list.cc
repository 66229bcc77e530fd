#include "src/executor/thread_block/free_list.h"

namespace tutti {

std::byte* FreeList::take(const Kind& kind) {
  const auto kept = kept_.find(kind);
  if (kept == kept_.end()) return nullptr;
  std::byte* memory = kept->second;
  kept_.erase(kept);
  return memory;
}

void FreeList::set_aside(std::byte* memory, const Kind& kind) {
  if (kind.shared) aside_.push_back(memory);
}

std::vector<std::byte*> FreeList::take_freeable() {
  std::vector<std::byte*> all = std::exchange(aside_, {});
  for (const auto& [kind, memory] : std::exchange(kept_, {})) all.push_back(memory);
  return all;
}

}  // namespace tutti
