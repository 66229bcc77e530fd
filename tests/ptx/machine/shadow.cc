#include "tests/ptx/machine/shadow.h"

#include <algorithm>

namespace tutti::ptx {

namespace {

Granule granule_of(const Cell& write) {
  Granule granule;
  granule.cells[0] = write;
  granule.written = write.bytes;
  return granule;
}

}  // namespace

std::uint64_t Shadow::fill(std::uint64_t address, std::uint64_t end, const Cell& write) {
  const std::uint64_t page = address / kPageBytes;
  if (address % kPageBytes != 0 || end - address < kPageBytes || pages_.contains(page)) return address;
  Cell each = write;
  each.bytes = 0xff;
  return fills_.try_emplace(page, each).second ? address + kPageBytes : address;
}

void Shadow::find(std::uint64_t page) {
  std::unique_ptr<Page>& found = pages_[page];
  if (found == nullptr) {
    found = std::make_unique<Page>();
    const auto filled = fills_.extract(page);
    if (!filled.empty()) std::fill(std::begin(found->granules), std::end(found->granules), granule_of(filled.mapped()));
  }
  last_page_ = page;
  last_ = found.get();
}

void Shadow::forget(std::uint64_t begin, std::uint64_t end, bool written) {
  for (std::uint64_t address = begin / 8 * 8; address < end;) {
    const std::uint64_t page_end = (address / kPageBytes + 1) * kPageBytes;
    const std::uint64_t number = address / kPageBytes;
    if (!written && address % kPageBytes == 0 && page_end <= end) fills_.erase(number);
    if (fills_.contains(number)) find(number);
    const auto page = pages_.find(number);
    if (page == pages_.end()) {
      address = page_end;
      continue;
    }
    for (; address < std::min(page_end, end); address += 8) {
      Granule& granule = page->second->granules[address % kPageBytes / 8];
      for (std::uint64_t byte = 0; granule.published && byte < 8; ++byte) publications_.erase(address + byte);
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

namespace {

// The cell that a new access replaces if no other is free: one of a launch that ended, or a read, or any.
Cell* choose_victim(Granule& granule, const Cell& access, const View& view, const Clocks& clocks) {
  Cell* victim = &granule.cells[(access.clock + access.thread) % Granule::kCells];
  for (Cell& cell : granule.cells) {
    if (!cell.writes) victim = &cell;
  }
  for (Cell& cell : granule.cells) {
    if (clocks.is_known(cell.block, view)) victim = &cell;
  }
  return victim;
}

bool repeats(const Cell& a, const Cell& b) {
  return a.block == b.block && a.epoch == b.epoch && a.clock == b.clock && a.thread == b.thread && a.bytes == b.bytes &&
         a.writes == b.writes && a.strong == b.strong && a.size == b.size;
}

}  // namespace

std::optional<Cell> record_access(Granule& granule, const Cell& access, const View& view, const Clocks& clocks) {
  Cell* place = nullptr;
  for (Cell& cell : granule.cells) {
    if (cell.bytes == 0) {
      if (place == nullptr) place = &cell;
      continue;
    }
    if (repeats(cell, access)) return std::nullopt;
    bool is_ordered = cell.block == access.block && (cell.thread == access.thread || cell.epoch < access.epoch);
    const bool conflicts = (cell.bytes & access.bytes) != 0 && (cell.writes || access.writes);
    if (conflicts && !is_ordered) {
      is_ordered = clocks.ordered(cell.event(), access.event(), view);
      const bool strong = cell.strong && access.strong && cell.size == access.size &&
                          clocks.in_scope(cell.block, cell.scope, access.block, access.scope);
      if (!is_ordered && !strong) return cell;
    }
    // An access ordered after the new one is ordered after the old one, too. One that does not race with the new one
    // does not race with the old one.
    const bool implied = is_ordered && (cell.bytes & ~access.bytes) == 0 && (access.writes || !cell.writes) &&
                         (!access.strong || (cell.strong && cell.size == access.size && access.scope <= cell.scope));
    if (implied) place = &cell;
  }
  if (place == nullptr) place = choose_victim(granule, access, view, clocks);
  *place = access;
  return std::nullopt;
}

}  // namespace tutti::ptx
