// Which accesses of a unit are ordered however processes are scheduled: vector clocks that messages and flags carry.
// Slots that come back (credits) order nothing: there may be more of them.
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
    std::uint32_t time = 0;  // Of that process; 0: there was none.
    std::uint32_t run = 0;   // For complaints: which chunk of which operation, and which step.
    std::uint32_t step = 0;
    Kind kind = Kind::read;
  };

  Races(std::uint32_t processes, std::uint32_t cells);

  // Records the access; returns an earlier one that conflicts with it and is not ordered before it.
  std::optional<Access> access(std::uint32_t cell, const Access& now);

  // What `process` has seen so far, to be acquired `readers` times; later accesses are not in it.
  std::uint32_t release(std::uint32_t process, std::uint32_t readers);
  void acquire(std::uint32_t process, std::uint32_t snapshot);

 private:
  struct History {
    Access write;
    std::vector<Access> reads;  // Since the write, the latest of each process.
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
