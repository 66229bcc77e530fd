#include "python/tutti/torch/native/elements.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>

#include "python/tutti/torch/native/communicator.h"

namespace tutti_torch {
namespace {

bool is_plain(const at::Tensor& tensor) { return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg(); }

// Returns a contiguous copy with the values that the tensor shows.
at::Tensor plain_copy(const at::Tensor& tensor) { return tensor.resolve_conj().resolve_neg().contiguous(); }

// Returns the library's type, or -1.
int type_or_none(at::ScalarType type) {
  switch (type) {
    case at::kChar: return tutti_int8;
    case at::kByte: return tutti_uint8;
    case at::kShort: return tutti_int16;
    case at::kUInt16: return tutti_uint16;
    case at::kInt: return tutti_int32;
    case at::kUInt32: return tutti_uint32;
    case at::kLong: return tutti_int64;
    case at::kUInt64: return tutti_uint64;
    case at::kHalf: return tutti_float16;
    case at::kBFloat16: return tutti_bfloat16;
    case at::kFloat: return tutti_float32;
    case at::kDouble: return tutti_float64;
    case at::kFloat8_e4m3fn: return tutti_float8_e4m3;
    case at::kFloat8_e5m2: return tutti_float8_e5m2;
    case at::kBool: return tutti_bool;
    case at::kComplexFloat: return tutti_complex64;
    case at::kComplexDouble: return tutti_complex128;
    default: return -1;
  }
}

tutti_reduction create_with_factor(const c10d::ReduceOp& reduction, at::ScalarType type, tutti_comm comm) {
  const auto* factor = dynamic_cast<const c10d::NCCLPreMulSumSupplement*>(reduction.supplement_.get());
  TUTTI_CHECK_ARGUMENT(factor != nullptr,
                       "a premultiplied sum needs a factor; create it with dist._make_nccl_premul_sum()");
  const at::Tensor scalar = factor->tensor_factor.defined()
                                ? factor->tensor_factor.to(at::kCPU, type).contiguous()
                                : at::full({1}, factor->double_factor, at::TensorOptions().dtype(type));
  tutti_reduction created = tutti_sum;
  check(tutti_reduction_create_pre_mul_sum(scalar.data_ptr(), reducible_type(type), comm, &created));
  return created;
}

}  // namespace

Elements elements_of(at::ScalarType type) {
  const int known = type_or_none(type);
  if (known >= 0) return {static_cast<tutti_type>(known), 1};
  return {tutti_uint8, c10::elementSize(type)};
}

tutti_type reducible_type(at::ScalarType type) {
  const int known = type_or_none(type);
  TUTTI_CHECK_ARGUMENT(known >= 0, "Tutti has no reductions of ", toString(type),
                       "; convert the tensor to a floating-point or integer type");
  return static_cast<tutti_type>(known);
}

ScopedReduction::ScopedReduction(const c10d::ReduceOp& reduction, at::ScalarType type, tutti_comm comm) {
  switch (reduction.op_) {
    case c10d::ReduceOp::SUM: reduction_ = tutti_sum; return;
    case c10d::ReduceOp::AVG: reduction_ = tutti_avg; return;
    case c10d::ReduceOp::PRODUCT: reduction_ = tutti_prod; return;
    case c10d::ReduceOp::MIN: reduction_ = tutti_min; return;
    case c10d::ReduceOp::MAX: reduction_ = tutti_max; return;
    case c10d::ReduceOp::BAND: reduction_ = tutti_band; return;
    case c10d::ReduceOp::BOR: reduction_ = tutti_bor; return;
    case c10d::ReduceOp::BXOR: reduction_ = tutti_bxor; return;
    case c10d::ReduceOp::PREMUL_SUM:
      reduction_ = create_with_factor(reduction, type, comm);
      owner_ = comm;
      return;
    default: TUTTI_CHECK_ARGUMENT(false, "Tutti has no reduction number ", static_cast<int>(reduction.op_));
  }
}

ScopedReduction::~ScopedReduction() {
  if (owner_ != nullptr) tutti_reduction_destroy(reduction_, owner_);
}

Dense Dense::for_reading(const at::Tensor& tensor) { return {tensor, is_plain(tensor) ? tensor : plain_copy(tensor)}; }

Dense Dense::for_writing(const at::Tensor& tensor) {
  if (is_plain(tensor)) return {tensor, tensor};
  return {tensor, at::empty_like(tensor, {}, at::MemoryFormat::Contiguous)};
}

Dense Dense::for_update(const at::Tensor& tensor) { return for_reading(tensor); }

bool Dense::overlaps(const Dense& other) const {
  const auto* mine = static_cast<const char*>(data());
  const auto* theirs = static_cast<const char*>(other.data());
  return mine < theirs + other.dense_.nbytes() && theirs < mine + dense_.nbytes();
}

bool Dense::is_misplaced_in(const Dense& whole, tutti_comm comm) const {
  if (!overlaps(whole)) return false;
  int rank = 0;
  check(tutti_comm_rank(comm, &rank));
  return data() != static_cast<const char*>(whole.data()) + rank * dense_.nbytes();
}

Dense Dense::copy() const { return for_reading(dense_.clone()); }

void Dense::finish() const {
  if (!dense_.is_same(original_)) original_.copy_(dense_);
}

void check_tensor(const char* operation, const at::Tensor& tensor) {
  TUTTI_CHECK_ARGUMENT(tensor.defined(), operation, ": a tensor is undefined");
  TUTTI_CHECK_ARGUMENT(tensor.device().is_cpu() || tensor.device().is_cuda(), operation, ": a tensor is on ",
                       tensor.device().str(), "; the backend tutti serves CPU and CUDA tensors");
  TUTTI_CHECK_ARGUMENT(tensor.layout() == at::kStrided, operation, ": a tensor has layout ", tensor.layout(),
                       "; only dense tensors are allowed");
}

const at::Tensor& only_tensor(const char* operation, const std::vector<at::Tensor>& tensors) {
  TUTTI_CHECK_ARGUMENT(tensors.size() == 1, operation, ": got ", tensors.size(), " tensors; pass one per rank");
  check_tensor(operation, tensors[0]);
  return tensors[0];
}

void check_writable(const at::Tensor& tensor) {
  if (tensor.layout() != at::kStrided || at::has_internal_overlap(tensor) != at::MemOverlap::Yes) return;
  TUTTI_CHECK_ARGUMENT(
      false, "a tensor of shape ", tensor.sizes(), " and strides ", tensor.strides(),
      " has elements that share memory, so it cannot receive a result; pass a copy, as of tensor.contiguous()");
}

void check_same_type(const char* operation, const at::Tensor& a, const at::Tensor& b) {
  TUTTI_CHECK_ARGUMENT(a.scalar_type() == b.scalar_type(), operation, ": tensors have types ", a.scalar_type(), " and ",
                       b.scalar_type(), "; use one type");
}

}  // namespace tutti_torch
