// Detects races between accesses of a unit, for any scheduling of processes, by vector clocks that messages and flags
// carry. Returned slots (credits) order nothing, since a lane may have more slots.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tutti {

class Races {
 public:
  enum class Kind : std::uint8_t { read, write };
  struct Access {
    std::uint32_t process = 0;
    std::uint32_t time = 0;  // Clock of the process; 0: no access.
    std::uint32_t run = 0;   // Chunk and operation, for error messages.
    std::uint32_t step = 0;
    Kind kind = Kind::read;
  };

  Races(std::uint32_t processes, std::uint32_t cells);

  // Records the access. Returns an earlier conflicting access that is not ordered before it, if there is one.
  std::optional<Access> access(std::uint32_t cell, const Access& now);

  // Returns a snapshot of the clock of `process`, to be acquired `readers` times. Excludes later accesses.
  std::uint32_t release(std::uint32_t process, std::uint32_t readers);
  void acquire(std::uint32_t process, std::uint32_t snapshot);

 private:
  struct History {
    Access write;
    std::vector<Access> reads;  // Reads since the write: the latest of each process.
  };
  std::uint32_t* clock(std::uint32_t process) { return clocks_.data() + std::size_t{process} * processes_; }
  bool ordered(const Access& earlier, std::uint32_t process) { return earlier.time <= clock(process)[earlier.process]; }

  std::uint32_t processes_;
  std::vector<std::uint32_t> clocks_;
  std::vector<History> histories_;
  std::vector<std::vector<std::uint32_t>> snapshots_;
  std::vector<std::uint32_t> readers_left_, free_;
};

}  // namespace tutti
