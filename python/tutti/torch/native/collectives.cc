#include <ATen/ops/cat.h>

#include "python/tutti/torch/native/elements.h"
#include "python/tutti/torch/native/process_group.h"

namespace tutti_torch {
namespace {

using c10d::OpType;

std::vector<Dense> all_of(const Tensors& tensors, Dense (*view)(const at::Tensor&)) {
  std::vector<Dense> result;
  result.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) result.push_back(view(tensor));
  return result;
}

void reduce_scatter_dense(Dense input, const Dense& output, const c10d::ReduceOp& reduction,
                          const CallContext& context) {
  if (output.is_misplaced_in(input, context.comm)) input = input.copy();
  const at::ScalarType type = output.tensor().scalar_type();
  ScopedReduction scoped(reduction, type, context.comm);
  check(tutti_reduce_scatter(input.data(), output.data(), output.count(), reducible_type(type), scoped.get(),
                             context.comm, context.stream));
}

void check_reduce_scatter(const at::Tensor& output, const at::Tensor& input, int ranks) {
  check_tensor("reduce_scatter", output);
  check_tensor("reduce_scatter", input);
  check_same_type("reduce_scatter", output, input);
  TUTTI_CHECK_ARGUMENT(input.numel() == output.numel() * ranks, "reduce_scatter: the input has ", input.numel(),
                       " elements, the output ", output.numel(), "; the input must have ", ranks,
                       " times as many (world_size)");
}

// Blocks of different sizes: rank i receives the sum of block i.
void reduce_scatter_unequal(const Tensors& blocks, const at::Tensor& output, const c10d::ReduceOp& reduction,
                            const CallContext& context) {
  const at::ScalarType type = output.scalar_type();
  const Dense received = Dense::for_writing(output);
  const std::vector<Dense> sent = all_of(blocks, Dense::for_reading);
  ScopedReduction scoped(reduction, type, context.comm);
  CallGroup group;
  for (size_t root = 0; root < sent.size(); ++root) {
    check(tutti_reduce(sent[root].data(), received.data(), sent[root].count(), reducible_type(type), scoped.get(),
                       static_cast<int>(root), context.comm, context.stream));
  }
  group.end();
  received.finish();
}

// Reduces tensors of a GPU without copies of them.
void all_reduce_together(const Tensors& tensors, tutti_type type, const c10d::ReduceOp& reduction,
                         const CallContext& context) {
  const std::vector<Dense> views = all_of(tensors, Dense::for_update);
  ScopedReduction scoped(reduction, tensors[0].scalar_type(), context.comm);
  CallGroup group;
  for (const Dense& view : views) {
    check(tutti_all_reduce(view.data(), view.data(), view.count(), type, scoped.get(), context.comm, context.stream));
  }
  group.end();
  for (const Dense& view : views) view.finish();
}

}  // namespace

WorkPtr ProcessGroupTutti::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  const at::Tensor& tensor = only_tensor("broadcast", tensors);
  check_root("broadcast", options.rootRank);
  Call call = call_of(OpType::BROADCAST, TUTTI_TITLE("broadcast"), options);
  call.inputs = tensors;
  call.outputs = {tensors};
  call.writes = rank_ != options.rootRank;
  const int root = static_cast<int>(options.rootRank);
  return start(std::move(call), [tensor, root, rank = rank_](const CallContext& context) {
    const Dense dense = rank == root ? Dense::for_reading(tensor) : Dense::for_writing(tensor);
    const Elements elements = elements_of(tensor.scalar_type());
    check(tutti_broadcast(dense.data(), dense.data(), dense.count() * elements.per_element, elements.type, root,
                          context.comm, context.stream));
    if (rank != root) dense.finish();
  });
}

WorkPtr ProcessGroupTutti::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  if (tensors.size() == 1 && tensors[0].is_sparse()) return allreduce_sparse(tensors, options);
  const at::Tensor& tensor = only_tensor("all_reduce", tensors);
  const tutti_type type = reducible_type(tensor.scalar_type());
  Call call = call_of(OpType::ALLREDUCE, TUTTI_TITLE("all_reduce"), options);
  call.inputs = tensors;
  call.outputs = {tensors};
  return start(std::move(call), [tensor, type, reduction = options.reduceOp](const CallContext& context) {
    const Dense dense = Dense::for_update(tensor);
    ScopedReduction scoped(reduction, tensor.scalar_type(), context.comm);
    check(
        tutti_all_reduce(dense.data(), dense.data(), dense.count(), type, scoped.get(), context.comm, context.stream));
    dense.finish();
  });
}

WorkPtr ProcessGroupTutti::allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  TUTTI_CHECK_ARGUMENT(!tensors.empty(), "all_reduce_coalesced: the list of tensors is empty; pass at least one");
  for (const at::Tensor& tensor : tensors) {
    check_tensor("all_reduce_coalesced", tensor);
    check_same_type("all_reduce_coalesced", tensor, tensors[0]);
  }
  const tutti_type type = reducible_type(tensors[0].scalar_type());
  Call call = call_of(OpType::ALLREDUCE_COALESCED, TUTTI_TITLE("all_reduce"), options);
  call.inputs = tensors;
  call.outputs = {tensors};
  return start(std::move(call), [tensors, type, reduction = options.reduceOp](const CallContext& context) {
    if (tensors[0].is_cuda()) return all_reduce_together(tensors, type, reduction, context);
    Tensors pieces;
    for (const at::Tensor& tensor : tensors) pieces.push_back(Dense::for_reading(tensor).tensor().reshape({-1}));
    const at::Tensor flat = at::cat(pieces);
    ScopedReduction scoped(reduction, flat.scalar_type(), context.comm);
    check(tutti_all_reduce(flat.data_ptr(), flat.data_ptr(), static_cast<size_t>(flat.numel()), type, scoped.get(),
                           context.comm, context.stream));
    int64_t offset = 0;
    for (const at::Tensor& tensor : tensors) {
      tensor.copy_(flat.narrow(0, offset, tensor.numel()).view(tensor.sizes()));
      offset += tensor.numel();
    }
  });
}

WorkPtr ProcessGroupTutti::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  const at::Tensor& tensor = only_tensor("reduce", tensors);
  check_root("reduce", options.rootRank);
  const tutti_type type = reducible_type(tensor.scalar_type());
  Call call = call_of(OpType::REDUCE, TUTTI_TITLE("reduce"), options);
  call.inputs = tensors;
  call.outputs = {tensors};
  call.writes = rank_ == options.rootRank;
  const int root = static_cast<int>(options.rootRank);
  return start(std::move(call),
               [tensor, type, root, rank = rank_, reduction = options.reduceOp](const CallContext& context) {
                 const Dense dense = Dense::for_update(tensor);
                 ScopedReduction scoped(reduction, tensor.scalar_type(), context.comm);
                 check(tutti_reduce(dense.data(), dense.data(), dense.count(), type, scoped.get(), root, context.comm,
                                    context.stream));
                 if (rank == root) dense.finish();
               });
}

WorkPtr ProcessGroupTutti::reduce_scatter(Tensors& outputs, TensorLists& inputs,
                                          const c10d::ReduceScatterOptions& options) {
  const at::Tensor& output = only_tensor("reduce_scatter", outputs);
  TUTTI_CHECK_ARGUMENT(inputs.size() == 1 && static_cast<int>(inputs[0].size()) == size_,
                       "reduce_scatter: the list of inputs must have ", size_, " tensors (world_size)");
  bool equal = true;
  for (const at::Tensor& block : inputs[0]) {
    check_tensor("reduce_scatter", block);
    check_same_type("reduce_scatter", block, output);
    equal = equal && block.numel() == inputs[0][0].numel();
  }
  TUTTI_CHECK_ARGUMENT(inputs[0][rank_].numel() == output.numel(), "reduce_scatter: input ", rank_, " has ",
                       inputs[0][rank_].numel(), " elements, the output ", output.numel(),
                       "; both must have equally many");
  reducible_type(output.scalar_type());
  Call call = call_of(OpType::REDUCE_SCATTER, TUTTI_TITLE("reduce_scatter"), options);
  call.inputs = inputs[0];
  call.outputs = {outputs};
  return start(std::move(call),
               [output, equal, blocks = inputs[0], reduction = options.reduceOp](const CallContext& context) {
                 if (!equal) return reduce_scatter_unequal(blocks, output, reduction, context);
                 Tensors pieces;
                 for (const at::Tensor& block : blocks)
                   pieces.push_back(Dense::for_reading(block).tensor().reshape({-1}));
                 const Dense dense = Dense::for_writing(output);
                 reduce_scatter_dense(Dense::for_reading(at::cat(pieces)), dense, reduction, context);
                 dense.finish();
               });
}

WorkPtr ProcessGroupTutti::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                const c10d::ReduceScatterOptions& options) {
  check_reduce_scatter(output, input, size_);
  reducible_type(output.scalar_type());
  Call call = call_of(OpType::_REDUCE_SCATTER_BASE, TUTTI_TITLE("_reduce_scatter_base"), options);
  call.inputs = {input};
  call.outputs = {{output}};
  return start(std::move(call), [output, input, reduction = options.reduceOp](const CallContext& context) {
    const Dense dense = Dense::for_writing(output);
    reduce_scatter_dense(Dense::for_reading(input), dense, reduction, context);
    dense.finish();
  });
}

WorkPtr ProcessGroupTutti::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                           const c10d::ReduceScatterOptions& options) {
  TUTTI_CHECK_ARGUMENT(outputs.size() == inputs.size(), "reduce_scatter: got ", inputs.size(), " inputs and ",
                       outputs.size(), " outputs; pass equally many");
  for (size_t i = 0; i < outputs.size(); ++i) {
    check_reduce_scatter(outputs[i], inputs[i], size_);
    reducible_type(outputs[i].scalar_type());
  }
  Call call = call_of(OpType::COALESCED, TUTTI_TITLE("reduce_scatter_tensor_coalesced"), options);
  call.inputs = inputs;
  call.outputs = {outputs};
  return start(std::move(call), [outputs, inputs, reduction = options.reduceOp](const CallContext& context) {
    const std::vector<Dense> received = all_of(outputs, Dense::for_writing);
    const std::vector<Dense> sent = all_of(inputs, Dense::for_reading);
    for (size_t i = 0; i < sent.size(); ++i) reduce_scatter_dense(sent[i], received[i], reduction, context);
    for (const Dense& dense : received) dense.finish();
  });
}

}  // namespace tutti_torch
