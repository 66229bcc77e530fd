// Where buffers lie and calls run: in the host's memory and the calling thread, or on a GPU and in a stream of it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "perf/tool/options.h"
#include "perf/tool/pattern.h"
#include "tutti/tutti.h"

namespace perf {

// One rank's. A thread at a time.
class Site {
 public:
  virtual ~Site() = default;

  virtual std::string memory() const = 0;       // Value of options.memory: "host", "cuda:0".
  virtual std::string description() const = 0;  // In the table: "host memory", "device 0 NVIDIA H200".
  virtual tutti_stream stream() const = 0;      // Null: calls block.

  // Zeroed, and all there: no page of it is touched for the first time in a timed call.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void free(void* memory) = 0;

  // A checked run's data, put there and compared where it lies; done when they return. These are for memory of the
  // host.
  virtual void poison(void* memory, std::size_t bytes);
  virtual void fill(void* memory, const Pattern& pattern, int rank, std::size_t count);
  virtual std::uint64_t wrong(const void* memory, const Pattern& pattern, const Output& output);
  // Between there and the program's own memory.
  virtual void put(void* memory, const void* from, std::size_t bytes);
  virtual void get(const void* memory, void* to, std::size_t bytes);

  // Waits for the stream.
  virtual void synchronize() = 0;
};

// Calls that were captured into a graph.
class Replay {
 public:
  virtual ~Replay() = default;
  virtual void launch() = 0;
};

std::unique_ptr<Site> host_site(Memory memory);

// On the GPU that falls to this rank: ranks take those of the process round-robin. Ends the program with a sentence
// where there is none, or where the build knows none. CMake picks the file.
std::unique_ptr<Site> gpu_site(int rank);

// Captures what `calls` puts in the streams of these GPUs' sites, the first of which launches it.
std::unique_ptr<Replay> capture(const std::vector<Site*>& sites, const std::function<void()>& calls);

}  // namespace perf
