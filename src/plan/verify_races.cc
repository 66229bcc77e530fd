#include "src/plan/verify_races.h"

#include <algorithm>

namespace tutti {

Races::Races(std::uint32_t processes, std::uint32_t cells)
    : processes_(processes), clocks_(std::size_t{processes} * processes), histories_(cells) {
  for (std::uint32_t process = 0; process < processes; ++process) clock(process)[process] = 1;
}

std::optional<Races::Access> Races::access(std::uint32_t cell, const Access& now) {
  History& history = histories_[cell];
  Access stamped = now;
  stamped.time = clock(now.process)[now.process];
  if (!ordered(history.write, now.process)) return history.write;
  if (now.kind == Kind::read) {  // Reads do not conflict: keep one per process until the next write.
    const auto same = [&](const Access& read) { return read.process == now.process; };
    const auto known = std::find_if(history.reads.begin(), history.reads.end(), same);
    if (known == history.reads.end()) history.reads.push_back(stamped);
    else *known = stamped;
    return {};
  }
  for (const Access& read : history.reads) {
    if (!ordered(read, now.process)) return read;
  }
  history.reads.clear();
  history.write = stamped;
  return {};
}

std::uint32_t Races::release(std::uint32_t process, std::uint32_t readers) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(snapshots_.size()));
    snapshots_.emplace_back();
    readers_left_.push_back(0);
  }
  const std::uint32_t snapshot = free_.back();
  free_.pop_back();
  // Each release advances the clock, so that later accesses of the process are not in the snapshot.
  snapshots_[snapshot].assign(clock(process), clock(process) + processes_);
  readers_left_[snapshot] = readers;
  ++clock(process)[process];
  return snapshot;
}

void Races::acquire(std::uint32_t process, std::uint32_t snapshot) {
  std::uint32_t* mine = clock(process);
  const std::vector<std::uint32_t>& theirs = snapshots_[snapshot];
  for (std::uint32_t i = 0; i < processes_; ++i) mine[i] = std::max(mine[i], theirs[i]);
  if (--readers_left_[snapshot] == 0) free_.push_back(snapshot);
}

}  // namespace tutti
