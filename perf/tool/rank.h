// One of the ranks that a thread drives: where it is, its communicator, its buffers, and the data of checked runs.
#pragma once

#include <memory>

#include "perf/tool/collective.h"
#include "perf/tool/memory_backend.h"
#include "perf/tool/noise.h"
#include "perf/tool/pattern.h"

namespace perf {

struct Case {
  const Element& element;
  const Operation& operation;
  int root;
  std::size_t count;  // Elements per block.
  bool in_place;
};

class Rank {
 public:
  // `comm` must outlive this object.
  Rank(const Collective& collective, std::unique_ptr<MemoryBackend> backend, tutti_comm comm);
  ~Rank() { free(); }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  // Allocate and free the buffers. No rank may use them when free() is called.
  void allocate(std::size_t bytes);
  void free();
  // Register the buffers as windows, and deregister them. Collective: each rank calls them in a thread of its own.
  void register_windows();
  void deregister_windows();

  const Position& at() const { return at_; }
  MemoryBackend& backend() const { return *backend_; }
  tutti_comm comm() const { return comm_; }

  // Returns this rank's call of a case, valid until done_with().
  Call call_of(const Case& one);
  // Returns the same call on part `number` of the buffers, modulo their number of parts, so that the calls of a group
  // use separate memory where it suffices, as in nccl-tests.
  Call on_part(const Case& one, Call call, std::uint32_t number) const;
  void done_with(const Case& one, const Call& call);
  void run(const Call& call);
  // Waits for the calls in the rank's stream. Ends the program if one failed.
  void synchronize();

  // fill() writes the input of a checked call. wrong() returns the number of wrong output elements.
  void fill(const Case& one, const Call& call, const Pattern& pattern);
  std::uint64_t wrong(const Case& one, const Call& call, const Pattern& pattern);
  // For compressed calls on host memory: the input, and the errors of the output.
  void fill(const Case& one, const Call& call, const Noise& noise);
  Squares squares(const Case& one, const Call& call, const Pattern& pattern, const Noise& noise);

 private:
  std::size_t received_bytes(const Case& one) const {
    return collective_.recv_blocks(at_) * one.count * one.element.size;
  }

  const Collective& collective_;
  const std::unique_ptr<MemoryBackend> backend_;
  const tutti_comm comm_;
  Position at_;
  void* send_ = nullptr;
  void* recv_ = nullptr;
  std::size_t bytes_ = 0;  // Size of each buffer.
  tutti_window windows_[2] = {};
};

}  // namespace perf
