// What rails have written into memory of a GPU is there for its thread blocks when each rail's device has read a byte
// of it: a read does not overtake writes, though it asks no driver. Each has a queue pair with itself for that.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "transports/verbs/queue_pair.h"
#include "transports/verbs/rail_memory.h"

namespace tutti {

class ReadBack {
 public:
  static Result<std::unique_ptr<ReadBack>> create(const std::vector<VerbsPort>& ports, const VerbsOptions& options);

  // Of the first so many rails, where the other end has no more.
  void keep(std::size_t rails) { ways_.resize(std::min(rails, ways_.size())); }

  // Of all that has come there before. One at a time.
  Status begin(std::shared_ptr<const RailMemory> memory);
  // Whether all have read. What fails, fails from then on.
  Result<bool> done();

  // Of each rail.
  std::vector<int> descriptors() const;
  // Their descriptors are not readable until it goes on, and then they are. False: nothing is being read any more.
  Result<bool> arm();

 private:
  struct Way {
    explicit Way(QueuePair to_itself) : pair(std::move(to_itself)) {}
    QueuePair pair;
    std::array<std::byte, 64> byte = {};  // Where one goes.
    MemoryRegion region;
    bool reads = false;
  };

  std::vector<std::unique_ptr<Way>> ways_;
  std::string failure_;
  std::shared_ptr<const RailMemory> memory_;  // That is being read.
};

}  // namespace tutti
