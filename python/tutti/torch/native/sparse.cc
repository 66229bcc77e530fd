#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/empty.h>

#include "python/tutti/torch/native/elements.h"
#include "python/tutti/torch/native/process_group.h"

namespace tutti_torch {
namespace {

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
  const int64_t count = values.size(0);
  std::vector<int64_t> counts(ranks);
  check(tutti_all_gather(&count, counts.data(), 1, tutti_int64, comm, nullptr));
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
  TORCH_CHECK(tensors.size() == 1, "all_reduce: got ", tensors.size(), " tensors; pass one per rank");
  const at::Tensor tensor = tensors[0];
  TORCH_CHECK(tensor.layout() == at::kSparse && tensor.device().is_cpu(), "all_reduce: the tensor has layout ",
              tensor.layout(), " on ", tensor.device().str(), "; only sparse COO tensors on the CPU are allowed");
  TORCH_CHECK(options.reduceOp == c10d::ReduceOp::SUM, "all_reduce: sparse tensors can only be summed; use SUM");
  Call call = call_of(c10d::OpType::_ALLREDUCE_SPARSE, TUTTI_TITLE("sparse_all_reduce"), options);
  call.inputs = tensors;
  call.outputs = {tensors};
  return start(std::move(call), [tensor, ranks = size_](tutti_comm comm) { sum_sparse(tensor, ranks, comm); });
}

}  // namespace tutti_torch
