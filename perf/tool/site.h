// Where buffers lie and calls run.
#pragma once

#include <memory>
#include <string>

#include "perf/tool/options.h"
#include "tutti/tutti.h"

namespace perf {

// One rank's. A thread at a time.
class Site {
 public:
  virtual ~Site() = default;

  virtual std::string memory() const = 0;       // Of the communicator's options: "host".
  virtual std::string description() const = 0;  // In the table: "host memory".
  virtual tutti_stream stream() const = 0;      // Null: calls block.

  // Zeroed, and all there: no page of it is touched for the first time in a timed call.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void free(void* memory) = 0;

  // The host's window on a buffer, one at a time: where to write what publish() then brings there, and what is there
  // now. Of host memory it is the buffer.
  virtual void* window(void* memory, std::size_t bytes) = 0;
  virtual void publish(void* memory, std::size_t bytes) = 0;
  virtual const void* look(void* memory, std::size_t bytes) = 0;

  // Waits for the stream.
  virtual void synchronize() = 0;
};

std::unique_ptr<Site> host_site(Memory memory);

}  // namespace perf
