// Makes data that ports have written into GPU memory visible to thread blocks: each port's device reads one byte of it.
// A read does not overtake writes, and needs no driver call. Each port has a queue pair connected to itself for these
// reads.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "transports/verbs/port_memory.h"
#include "transports/verbs/queue_pair.h"

namespace tutti {

class ReadBack {
 public:
  static Result<std::unique_ptr<ReadBack>> create(const std::vector<VerbsPort>& ports, const VerbsOptions& options);

  // Drops all but the first `ports` ports, because the other end has no more.
  void keep(std::size_t ports) { loopbacks_.resize(std::min(ports, loopbacks_.size())); }

  // Starts reads that cover all data received so far. Only one set of reads may be in progress.
  Status begin(std::shared_ptr<const PortMemory> memory);
  // True once all ports have read. An error persists.
  Result<bool> done();

  // Descriptors of the ports.
  std::vector<int> descriptors() const;
  // Arms the descriptors, which become readable when the reads progress. Returns false if no reads are in progress.
  Result<bool> arm();

 private:
  struct Loopback {
    explicit Loopback(QueuePair to_itself) : pair(std::move(to_itself)) {}
    QueuePair pair;
    std::array<std::byte, 64> byte = {};  // Target of the reads.
    MemoryRegion region;
    bool reads = false;
  };

  std::vector<std::unique_ptr<Loopback>> loopbacks_;
  std::string failure_;
  std::shared_ptr<const PortMemory> memory_;  // Memory that is being read.
};

}  // namespace tutti
