// Records of memory: the last accesses to each 8 bytes, which bytes were written, and who published a value by a strong
// store.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include "tests/ptx/machine/clocks.h"

namespace tutti::ptx {

// An access to bytes of a granule of 8 bytes.
struct Cell {
  std::uint32_t block = 0, epoch = 0, clock = 0;
  std::uint32_t site = 0;  // Program counter in the launch's code.
  std::uint16_t thread = 0;
  std::uint8_t bytes = 0;  // Mask.
  bool writes : 1 = false;
  bool strong : 1 = false;
  Scope scope : 2 = Scope::block;
  std::uint8_t size : 2 = 0;  // Binary logarithm of the bytes of an element, at most 8.

  Event event() const { return {block, epoch, clock, thread}; }
};

struct Granule {
  static constexpr unsigned kCells = 3;
  Cell cells[kCells];
  std::uint8_t written = 0;   // Mask of initialised bytes, if they are tracked.
  bool published = false;     // A word of it has a Publication.
  std::uint16_t history = 0;  // Index of its youngest overwritten value in GlobalMemory::history_.
};
static_assert(sizeof(Granule) == 64);

// The last strong store to a word.
struct Publication {
  std::uint64_t value = 0;
  ViewRef view;  // Knowledge of a reader of the value; null after a relaxed store.
  Scope scope = Scope::block;
  std::uint32_t block = 0;  // 0: the host or another process.
};

class Shadow {
 public:
  Granule& at(std::uint64_t address) {
    const std::uint64_t page = address / kPageBytes;
    if (page != last_page_ || last_ == nullptr) find(page);
    return last_->granules[address % kPageBytes / 8];
  }
  // Forgets accesses. The bytes count as written or not.
  void forget(std::uint64_t begin, std::uint64_t end, bool written);
  void mark_written(std::uint64_t begin, std::uint64_t end);
  // If nothing is recorded about the page at `address` and the page ends before `end`, records that `write` wrote each
  // of its granules, and returns the page's end; otherwise `address`. Until an access, such a page takes one cell.
  std::uint64_t fill(std::uint64_t address, std::uint64_t end, const Cell& write);

  Publication* find_publication(std::uint64_t address);
  Publication& publish(std::uint64_t address) { return publications_[address]; }

 private:
  static constexpr std::uint64_t kPageBytes = 4096;
  struct Page {
    Granule granules[kPageBytes / 8];
  };
  void find(std::uint64_t page);

  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  std::unordered_map<std::uint64_t, Cell> fills_;  // By page that is not in `pages_`.
  std::unordered_map<std::uint64_t, Publication> publications_;
  std::uint64_t last_page_ = 0;
  Page* last_ = nullptr;
};

// Records an access in the granule. Returns an earlier access that conflicts with it and is not ordered, if there is
// one.
std::optional<Cell> record_access(Granule& granule, const Cell& access, const View& view, const Clocks& clocks);

}  // namespace tutti::ptx
