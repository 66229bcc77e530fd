// All-reduce among ranks of one process that share a GPU: by Tutti, and by the hand-written kernel. One thread enqueues
// both in one stream, on the same buffers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "perf/gpu/kernels.h"
#include "tutti/tutti.h"

namespace perf {

// Input and output buffers of all ranks. Inputs are filled with values.
class Buffers {
 public:
  Buffers(int ranks, std::size_t bytes, cudaStream_t stream);
  ~Buffers();
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  int ranks() const { return static_cast<int>(inputs_.size()); }
  const float* input(int rank) const { return inputs_[static_cast<std::size_t>(rank)]; }
  float* output(int rank) const { return outputs_[static_cast<std::size_t>(rank)]; }
  // Overwrites the outputs with NaN.
  void spoil(std::size_t count, cudaStream_t stream);
  // Returns the number of output elements that are not the sum of the inputs. Waits for the stream.
  std::uint64_t wrong(std::size_t count, cudaStream_t stream);

 private:
  std::vector<float*> inputs_, outputs_;
  std::uint64_t* wrong_ = nullptr;
};

class Competitor {
 public:
  virtual ~Competitor() = default;
  virtual void enqueue(std::size_t count, cudaStream_t stream) = 0;
  virtual void settled() {}  // Ends the program if a call failed. The stream must be empty.
};

// `algorithm`: name, or "" for the tuner's choice.
std::unique_ptr<Competitor> tutti_all_reduces(const Buffers& buffers, const std::string& algorithm);
std::unique_ptr<Competitor> by_hand(const Buffers& buffers, int blocks);

}  // namespace perf
