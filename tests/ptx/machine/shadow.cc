#include "tests/ptx/machine/shadow.h"

#include <algorithm>

namespace tutti::ptx {

void Shadow::find(std::uint64_t page) {
  std::unique_ptr<Page>& found = pages_[page];
  if (found == nullptr) found = std::make_unique<Page>();
  last_page_ = page;
  last_ = found.get();
}

void Shadow::forget(std::uint64_t begin, std::uint64_t end, bool written) {
  std::erase_if(publications_, [&](const auto& each) { return each.first >= begin && each.first < end; });
  for (std::uint64_t address = begin / 8 * 8; address < end;) {
    const std::uint64_t page_end = (address / kPageBytes + 1) * kPageBytes;
    const auto page = pages_.find(address / kPageBytes);
    if (page == pages_.end()) {
      address = page_end;
      continue;
    }
    for (; address < std::min(page_end, end); address += 8) {
      Granule& granule = page->second->granules[address % kPageBytes / 8];
      granule = {};
      granule.written = written ? 0xff : 0;
    }
  }
}

void Shadow::mark_written(std::uint64_t begin, std::uint64_t end) {
  for (std::uint64_t address = begin / 8 * 8; address < end; address += 8) {
    std::uint8_t mask = 0xff;
    if (address < begin) mask = static_cast<std::uint8_t>(mask << (begin - address));
    if (address + 8 > end) mask = static_cast<std::uint8_t>(mask & (0xff >> (address + 8 - end)));
    at(address).written |= mask;
  }
}

Publication* Shadow::find_publication(std::uint64_t address) {
  const auto found = publications_.find(address);
  return found == publications_.end() ? nullptr : &found->second;
}

std::optional<Cell> record_access(Granule& granule, const Cell& access, const View& view, const Clocks& clocks) {
  Cell* place = nullptr;
  const Event now = access.event();
  for (Cell& cell : granule.cells) {
    if (cell.bytes == 0) {
      if (place == nullptr) place = &cell;
      continue;
    }
    if (cell.block == access.block && cell.epoch == access.epoch && cell.clock == access.clock &&
        cell.thread == access.thread && cell.bytes == access.bytes && cell.writes == access.writes &&
        cell.strong == access.strong) {
      return std::nullopt;  // A repetition.
    }
    const bool overlaps = (cell.bytes & access.bytes) != 0;
    const bool conflicts = overlaps && (cell.writes || access.writes);
    const bool is_ordered = clocks.ordered(cell.event(), now, view);
    if (conflicts && !is_ordered) {
      const bool strong =
          cell.strong && access.strong && clocks.in_scope(cell.block, cell.scope, access.block, access.scope);
      if (!strong) return cell;
      continue;
    }
    // The new access implies the old one, if whoever is ordered after the new one is ordered after the old one.
    const bool implied = is_ordered && (cell.bytes & ~access.bytes) == 0 && (access.writes || !cell.writes) &&
                         (cell.strong || !access.strong);
    if (implied) place = &cell;
  }
  if (place == nullptr) {  // Evicts a read rather than a write.
    place = &granule.cells[(access.clock + access.thread) % Granule::kCells];
    for (Cell& cell : granule.cells) {
      if (!cell.writes) place = &cell;
    }
  }
  *place = access;
  return std::nullopt;
}

}  // namespace tutti::ptx
