// Memory of the buffers and stream of the calls: host memory and the calling thread, or memory and a stream of a GPU.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "perf/tool/options.h"
#include "perf/tool/pattern.h"
#include "tutti/tutti.h"

namespace perf {

// Belongs to one rank. Not thread-safe.
class MemoryBackend {
 public:
  virtual ~MemoryBackend() = default;

  virtual std::string memory() const = 0;       // Value of options.memory: "host", "cuda:0".
  virtual std::string description() const = 0;  // In the table: "host memory", "device 0 NVIDIA H200".
  virtual tutti_stream stream() const = 0;      // Null: calls block.

  // Returns zeroed memory. All its pages are touched, so that timed calls cause no page faults.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void free(void* memory) = 0;

  // Fill and compare the data of checked runs in place, and return when that is done. By default for host memory.
  virtual void poison(void* memory, std::size_t bytes);
  virtual void fill(void* memory, const Pattern& pattern, int rank, std::size_t count);
  virtual std::uint64_t wrong(const void* memory, const Pattern& pattern, const Output& output);
  // Copy between the memory and the program's own memory.
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

std::unique_ptr<MemoryBackend> host_backend(Memory memory);

enum class GpuAllocator { cuda, tutti };  // cudaMalloc, or tutti_mem_alloc_cuda.

// Returns a backend on the GPU of this rank. Ranks use the GPUs of the process round-robin. Ends the program with a
// message if there is no GPU, or the build does not support GPUs. CMake selects the source file.
std::unique_ptr<MemoryBackend> gpu_backend(int rank, GpuAllocator allocator);

// Captures the work that `calls` enqueues in the streams of these GPUs' backends. The graph is launched in the stream
// of the first one.
std::unique_ptr<Replay> capture(const std::vector<MemoryBackend*>& backends, const std::function<void()>& calls);

}  // namespace perf
