#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <type_traits>

#include "python/tutti/torch/native/elements.h"
#include "python/tutti/torch/native/process_group.h"

namespace tutti_torch {
namespace {

constexpr size_t kMaxDimensions = 64;  // The limit of PyTorch's own operations.

// A rank's tensor as ranks exchange it, on both paths of the backend alike.
struct SparseShape {
  int64_t count = 0;  // Elements with indices.
  int64_t type = 0;   // From elements_of().
  int64_t type_bytes = 0;
  int64_t sparse_dimensions = 0;
  int64_t dimensions = 0;
  int64_t sizes[kMaxDimensions] = {};

  std::string text() const {
    return c10::str("shape ", at::IntArrayRef(sizes, static_cast<size_t>(dimensions)), " with ", sparse_dimensions,
                    " sparse dimensions and ", type_bytes, " bytes per element (tutti_type ", type, ")");
  }
  bool fits(const SparseShape& other) const {
    return type == other.type && type_bytes == other.type_bytes && sparse_dimensions == other.sparse_dimensions &&
           dimensions == other.dimensions && std::equal(sizes, sizes + kMaxDimensions, other.sizes);
  }
};

SparseShape shape_of(const at::Tensor& tensor, int64_t count) {
  SparseShape shape;
  shape.count = count;
  shape.type = elements_of(tensor.scalar_type()).type;
  shape.type_bytes = static_cast<int64_t>(tensor.element_size());
  shape.sparse_dimensions = tensor.sparse_dim();
  shape.dimensions = tensor.dim();
  std::copy(tensor.sizes().begin(), tensor.sizes().end(), shape.sizes);
  return shape;
}

// Returns how many elements each rank has. Throws on all ranks if their tensors do not fit.
std::vector<int64_t> gather_counts(const SparseShape& own, int ranks, tutti_comm comm) {
  static_assert(std::is_trivially_copyable_v<SparseShape>);
  constexpr size_t kWords = sizeof(SparseShape) / sizeof(int64_t);
  std::vector<SparseShape> shapes(static_cast<size_t>(ranks));
  check(tutti_all_gather(&own, shapes.data(), kWords, tutti_int64, comm, nullptr));
  std::vector<int64_t> counts;
  for (const SparseShape& shape : shapes) {
    TUTTI_CHECK_ARGUMENT(shape.fits(shapes[0]), "the tensor of rank 0 has ", shapes[0].text(), ", that of rank ",
                         counts.size(), " ", shape.text(), "; pass equal shapes and types on all ranks");
    counts.push_back(shape.count);
  }
  return counts;
}

// Gathers the tensors of all ranks, whose first dimensions differ.
Tensors gather_rows(const at::Tensor& rows, const std::vector<int64_t>& counts, tutti_comm comm) {
  const Elements elements = elements_of(rows.scalar_type());
  const size_t row = static_cast<size_t>(c10::multiply_integers(rows.sizes().slice(1))) * elements.per_element;
  std::vector<size_t> received_counts, displacements;
  int64_t total = 0;
  for (int64_t count : counts) {
    received_counts.push_back(static_cast<size_t>(count) * row);
    displacements.push_back(static_cast<size_t>(total) * row);
    total += count;
  }
  std::vector<int64_t> shape = rows.sizes().vec();
  shape[0] = total;
  const at::Tensor all = at::empty(shape, rows.options());
  const std::vector<size_t> sent_counts(counts.size(), static_cast<size_t>(rows.size(0)) * row);
  const std::vector<size_t> zeros(counts.size(), 0);
  check(tutti_all_to_all_v(rows.data_ptr(), sent_counts.data(), zeros.data(), all.data_ptr(), received_counts.data(),
                           displacements.data(), elements.type, comm, nullptr));
  Tensors result;
  int64_t offset = 0;
  for (int64_t count : counts) {
    result.push_back(all.narrow(0, offset, count));
    offset += count;
  }
  return result;
}

void sum_sparse(const at::Tensor& tensor, int ranks, tutti_comm comm) {
  const at::Tensor input = tensor.coalesce();
  const at::Tensor indices = input.indices().t().contiguous();  // One row per element.
  const at::Tensor values = input.values().contiguous();
  const std::vector<int64_t> counts = gather_counts(shape_of(tensor, values.size(0)), ranks, comm);
  const Tensors all_indices = gather_rows(indices, counts, comm);
  const Tensors all_values = gather_rows(values, counts, comm);
  at::Tensor sum;
  for (int rank = 0; rank < ranks; ++rank) {
    const at::Tensor part =
        at::_sparse_coo_tensor_unsafe(all_indices[rank].t(), all_values[rank], tensor.sizes(), tensor.options());
    sum = rank == 0 ? part : sum.add(part);
  }
  tensor.copy_(sum.coalesce());
}

}  // namespace

WorkPtr ProcessGroupTutti::allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) {
  TUTTI_CHECK_ARGUMENT(tensors.size() == 1, "all_reduce: got ", tensors.size(), " tensors; pass one per rank");
  const at::Tensor tensor = tensors[0];
  TUTTI_CHECK_ARGUMENT(tensor.layout() == at::kSparse && tensor.device().is_cpu(), "all_reduce: the tensor has layout ",
                       tensor.layout(), " on ", tensor.device().str(),
                       "; only sparse COO tensors on the CPU are allowed");
  TUTTI_CHECK_ARGUMENT(options.reduceOp == c10d::ReduceOp::SUM,
                       "all_reduce: sparse tensors can only be summed; use SUM");
  TUTTI_CHECK_ARGUMENT(static_cast<size_t>(tensor.dim()) <= kMaxDimensions, "all_reduce: the sparse tensor has ",
                       tensor.dim(), " dimensions; at most ", kMaxDimensions, " are allowed");
  Call call = call_of(c10d::OpType::_ALLREDUCE_SPARSE, TUTTI_TITLE("sparse_all_reduce"), options);
  call.inputs = tensors;
  call.outputs = {tensors};
  return start(std::move(call),
               [tensor, ranks = size_](const CallContext& context) { sum_sparse(tensor, ranks, context.comm); });
}

}  // namespace tutti_torch
