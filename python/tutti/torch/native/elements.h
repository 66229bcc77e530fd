#pragma once
// Tutti's types and reductions for PyTorch's, and dense views of tensors.

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include "tutti/tutti.h"

namespace tutti_torch {

// Elements of a message as the library counts them. Types that the library does not know are moved as bytes.
struct Elements {
  tutti_type type;
  size_t per_element;  // Library elements per element of the tensor.
};
Elements elements_of(at::ScalarType type);

// Returns the library's type for reductions. Throws if there is none.
tutti_type reducible_type(at::ScalarType type);

// A reduction of one call. The destructor destroys a reduction with a factor, which is then valid for one communicator.
class ScopedReduction {
 public:
  // Throws for a reduction that the library does not have.
  ScopedReduction(const c10d::ReduceOp& reduction, at::ScalarType type, tutti_comm comm);
  ~ScopedReduction();
  ScopedReduction(const ScopedReduction&) = delete;
  ScopedReduction& operator=(const ScopedReduction&) = delete;
  tutti_reduction get() const { return reduction_; }

 private:
  tutti_reduction reduction_ = tutti_sum;
  tutti_comm owner_ = nullptr;  // Not null if the reduction was created.
};

// A tensor's elements in one piece of memory: the tensor's own if it is contiguous, else a copy.
class Dense {
 public:
  static Dense for_reading(const at::Tensor& tensor);
  // finish() copies the elements to the tensor.
  static Dense for_writing(const at::Tensor& tensor);
  static Dense for_update(const at::Tensor& tensor);

  void* data() const { return dense_.data_ptr(); }
  size_t count() const { return static_cast<size_t>(dense_.numel()); }
  const at::Tensor& tensor() const { return dense_; }
  bool overlaps(const Dense& other) const;
  // Returns whether this tensor shares memory with `whole`, of which it is not the block of this rank.
  bool is_misplaced_in(const Dense& whole, tutti_comm comm) const;
  Dense copy() const;
  void finish() const;

 private:
  Dense(at::Tensor original, at::Tensor dense) : original_(std::move(original)), dense_(std::move(dense)) {}
  at::Tensor original_;
  at::Tensor dense_;
};

// Throws unless `tensor` is a strided CPU or CUDA tensor. `operation` begins the message.
void check_tensor(const char* operation, const at::Tensor& tensor);
// Throws unless `tensors` is one tensor, as check_tensor requires.
const at::Tensor& only_tensor(const char* operation, const std::vector<at::Tensor>& tensors);
// Throws if elements of `tensor`, which receives a result, share memory, as after expand().
void check_writable(const at::Tensor& tensor);
// Throws unless the types are equal.
void check_same_type(const char* operation, const at::Tensor& a, const at::Tensor& b);

}  // namespace tutti_torch
