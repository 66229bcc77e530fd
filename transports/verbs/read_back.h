// Makes data that rails have written into GPU memory visible to its thread blocks: each rail's device reads a byte
// of it. A read does not overtake writes, and needs no driver call. Each rail has a queue pair with itself for
// these reads.
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

  // Keeps the first `rails` rails, if the other end has no more.
  void keep(std::size_t rails) { ways_.resize(std::min(rails, ways_.size())); }

  // Covers all data that has arrived. One read at a time.
  Status begin(std::shared_ptr<const RailMemory> memory);
  // True once all rails have read. An error persists.
  Result<bool> done();

  // A descriptor per rail.
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
