#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <optional>

#include "python/tutti/torch/native/elements.h"
#include "python/tutti/torch/native/process_group.h"

namespace tutti_torch {
namespace {

using c10d::OpType;
using Sizes = std::vector<size_t>;

// Blocks of one side of an exchange.
struct Blocks {
  void* base;
  Sizes counts;         // In library elements, as the displacements.
  Sizes displacements;  // From base.
};

// One block per rank in a list of tensors; finish() completes the blocks that are received.
class BlockList {
 public:
  BlockList(const Tensors& tensors, Dense (*view)(const at::Tensor&)) {
    for (const at::Tensor& tensor : tensors) views_.push_back(view(tensor));
  }

  // Returns blocks that lie in the tensors themselves. Nothing if their distances are not representable.
  std::optional<Blocks> in_place(const Elements& elements) const {
    const size_t size = views_[0].tensor().element_size() / elements.per_element;
    Blocks blocks{base(), {}, {}};
    for (const Dense& view : views_) {
      const bool is_empty = view.count() == 0;
      const size_t distance = is_empty ? 0 : static_cast<char*>(view.data()) - static_cast<char*>(blocks.base);
      if (distance % size != 0 || distance / size >= kMaxDisplacement) return std::nullopt;
      blocks.counts.push_back(view.count() * elements.per_element);
      blocks.displacements.push_back(distance / size);
    }
    return blocks;
  }

  // Returns the blocks one after the other, with the memory of `flat`.
  Blocks in(const at::Tensor& flat, const Elements& elements) const {
    Blocks blocks{flat.data_ptr(), {}, {}};
    size_t offset = 0;
    for (const Dense& view : views_) {
      blocks.counts.push_back(view.count() * elements.per_element);
      blocks.displacements.push_back(offset);
      offset += blocks.counts.back();
    }
    return blocks;
  }

  // Returns whether the blocks lie one after the other.
  bool is_adjacent() const {
    const char* end = static_cast<char*>(views_[0].data());
    for (const Dense& view : views_) {
      if (view.data() != end) return false;
      end += view.tensor().nbytes();
    }
    return true;
  }

  at::Tensor empty_flat() const {
    int64_t count = 0;
    for (const Dense& view : views_) count += view.tensor().numel();
    return at::empty({count}, views_[0].tensor().options());
  }

  at::Tensor flat_copy() const {
    Tensors pieces;
    for (const Dense& view : views_) pieces.push_back(view.tensor().reshape({-1}));
    return at::cat(pieces);
  }

  void copy_from(const at::Tensor& flat) const {
    int64_t offset = 0;
    for (const Dense& view : views_) {
      view.tensor().copy_(flat.narrow(0, offset, view.tensor().numel()).view(view.tensor().sizes()));
      offset += view.tensor().numel();
    }
  }

  void* data() const { return views_[0].data(); }
  const Dense& operator[](int rank) const { return views_[rank]; }

  // Returns whether a block of this list has memory of `other`.
  bool overlaps(const Dense& other) const {
    return std::any_of(views_.begin(), views_.end(), [&](const Dense& own) { return own.overlaps(other); });
  }
  bool overlaps(const BlockList& other) const {
    return std::any_of(other.views_.begin(), other.views_.end(), [&](const Dense& block) { return overlaps(block); });
  }

  void finish() const {
    for (const Dense& view : views_) view.finish();
  }

 private:
  static constexpr size_t kMaxDisplacement = size_t{1} << 40;  // The limit of tutti_all_to_all_v.

  void* base() const {
    void* lowest = nullptr;
    for (const Dense& view : views_) {
      if (view.count() > 0 && (lowest == nullptr || view.data() < lowest)) lowest = view.data();
    }
    return lowest;
  }

  std::vector<Dense> views_;
};

void exchange(const Blocks& sent, const Blocks& received, tutti_type type, const CallContext& context) {
  check(tutti_all_to_all_v(sent.base, sent.counts.data(), sent.displacements.data(), received.base,
                           received.counts.data(), received.displacements.data(), type, context.comm, context.stream));
}

// Sends `input` to all ranks, whose inputs have different sizes.
void all_gather_unequal(const at::Tensor& input, const Tensors& outputs, const CallContext& context) {
  const Elements elements = elements_of(input.scalar_type());
  const BlockList list(outputs, Dense::for_writing);
  Dense dense = Dense::for_reading(input);
  if (list.overlaps(dense)) dense = dense.copy();
  const Blocks sent{dense.data(), Sizes(outputs.size(), dense.count() * elements.per_element),
                    Sizes(outputs.size(), 0)};
  if (const std::optional<Blocks> received = list.in_place(elements)) {
    exchange(sent, *received, elements.type, context);
  } else {
    const at::Tensor flat = list.empty_flat();
    exchange(sent, list.in(flat, elements), elements.type, context);
    list.copy_from(flat);
  }
  list.finish();
}

void all_gather_equal(const at::Tensor& input, const Tensors& outputs, int rank, const CallContext& context) {
  const Elements elements = elements_of(input.scalar_type());
  const BlockList list(outputs, Dense::for_writing);
  Dense dense = Dense::for_reading(input);
  if (dense.data() != list[rank].data() && list.overlaps(dense)) dense = dense.copy();
  const bool is_adjacent = list.is_adjacent();
  const at::Tensor flat = is_adjacent ? at::Tensor() : list.empty_flat();
  check(tutti_all_gather(dense.data(), is_adjacent ? list.data() : flat.data_ptr(),
                         dense.count() * elements.per_element, elements.type, context.comm, context.stream));
  if (!is_adjacent) list.copy_from(flat);
  list.finish();
}

void all_gather_dense(const at::Tensor& input, const at::Tensor& output, const CallContext& context) {
  const Elements elements = elements_of(input.scalar_type());
  Dense sent = Dense::for_reading(input);
  const Dense received = Dense::for_writing(output);
  if (sent.is_misplaced_in(received, context.comm)) sent = sent.copy();
  check(tutti_all_gather(sent.data(), received.data(), sent.count() * elements.per_element, elements.type, context.comm,
                         context.stream));
  received.finish();
}

void check_all_gather(const at::Tensor& output, const at::Tensor& input, int ranks) {
  check_tensor("all_gather", output);
  check_tensor("all_gather", input);
  check_same_type("all_gather", output, input);
  TUTTI_CHECK_ARGUMENT(output.numel() == input.numel() * ranks, "all_gather: the input has ", input.numel(),
                       " elements, the output ", output.numel(), "; the output must have ", ranks,
                       " times as many (world_size)");
}

// Checks one list with a tensor per rank. Returns whether all tensors have equally many elements.
bool check_list(const char* operation, const Tensors& tensors, const at::Tensor& other, int ranks) {
  TUTTI_CHECK_ARGUMENT(static_cast<int>(tensors.size()) == ranks, operation, ": the list has ", tensors.size(),
                       " tensors; it must have ", ranks, " (world_size)");
  bool equal = true;
  for (const at::Tensor& tensor : tensors) {
    check_tensor(operation, tensor);
    check_same_type(operation, tensor, other);
    equal = equal && tensor.numel() == tensors[0].numel();
  }
  return equal;
}

// The list of the root of a gather or scatter, whose tensors are as large as `other`. Empty on other ranks.
Tensors root_list(const char* operation, const TensorLists& lists, const at::Tensor& other, int ranks) {
  TUTTI_CHECK_ARGUMENT(lists.size() == 1, operation, ": the root needs one list with ", ranks, " tensors (world_size)");
  const bool equal = check_list(operation, lists[0], other, ranks);
  TUTTI_CHECK_ARGUMENT(equal && lists[0][0].numel() == other.numel(), operation,
                       ": the tensors of the root's list must have ", other.numel(),
                       " elements, as the rank's own tensor");
  return lists[0];
}

void check_no_list(const char* operation, const TensorLists& lists) {
  TUTTI_CHECK_ARGUMENT(lists.empty() || (lists.size() == 1 && lists[0].empty()), operation,
                       ": a list of tensors is given on a rank that is not the root; pass it on the root only");
}

size_t row_size(const at::Tensor& tensor) {
  return tensor.dim() == 0 || tensor.size(0) == 0 ? 1 : static_cast<size_t>(tensor.numel() / tensor.size(0));
}

// Fails unless `rows` divides the tensor into one block per rank; empty: into equal blocks.
void check_rows(const std::vector<int64_t>& rows, const at::Tensor& tensor, int ranks) {
  TUTTI_CHECK_ARGUMENT(!rows.empty() || tensor.size(0) % ranks == 0,
                       "Tensor's dim 0 does not divide equally across group size");
  TUTTI_CHECK_ARGUMENT(rows.empty() || rows.size() == static_cast<size_t>(ranks),
                       "Number of tensor splits not equal to group size: ", rows.size(), " instead of ", ranks);
  int64_t left = tensor.size(0);
  const bool fit = std::all_of(rows.begin(), rows.end(), [&left](int64_t count) {
    if (count < 0 || count > left) return false;
    left -= count;
    return true;
  });
  TUTTI_CHECK_ARGUMENT(rows.empty() || (fit && left == 0), "Split sizes ", at::IntArrayRef(rows),
                       " doesn't match total dim 0 size ", tensor.size(0));
}

// Blocks of `rows[i]` rows of `dense`, or of equally many if `rows` is empty.
Blocks blocks_of_rows(const Dense& dense, const std::vector<int64_t>& rows, int ranks, size_t per_element) {
  Blocks blocks{dense.data(), {}, {}};
  const size_t row = row_size(dense.tensor()) * per_element;
  size_t offset = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const size_t count = rows.empty() ? dense.count() * per_element / ranks : static_cast<size_t>(rows[rank]) * row;
    blocks.counts.push_back(count);
    blocks.displacements.push_back(offset);
    offset += count;
  }
  return blocks;
}

}  // namespace

WorkPtr ProcessGroupTutti::allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  const at::Tensor& input = only_tensor("all_gather", inputs);
  TUTTI_CHECK_ARGUMENT(outputs.size() == 1, "all_gather: got ", outputs.size(), " lists of outputs; pass one");
  const bool equal = check_list("all_gather", outputs[0], input, size_);
  TUTTI_CHECK_ARGUMENT(outputs[0][rank_].numel() == input.numel(), "all_gather: output ", rank_, " has ",
                       outputs[0][rank_].numel(), " elements, the input ", input.numel(),
                       "; both must have equally many");
  Call call = call_of(OpType::ALLGATHER, TUTTI_TITLE("all_gather"), options);
  call.inputs = inputs;
  call.outputs = outputs;
  return start(std::move(call), [input, equal, list = outputs[0], rank = rank_](const CallContext& context) {
    equal ? all_gather_equal(input, list, rank, context) : all_gather_unequal(input, list, context);
  });
}

WorkPtr ProcessGroupTutti::_allgather_base(at::Tensor& output, at::Tensor& input,
                                           const c10d::AllgatherOptions& options) {
  check_all_gather(output, input, size_);
  Call call = call_of(OpType::_ALLGATHER_BASE, TUTTI_TITLE("_all_gather_base"), options);
  call.inputs = {input};
  call.outputs = {{output}};
  return start(std::move(call),
               [output, input](const CallContext& context) { all_gather_dense(input, output, context); });
}

WorkPtr ProcessGroupTutti::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                           const c10d::AllgatherOptions& options) {
  TUTTI_CHECK_ARGUMENT(outputs.size() == inputs.size(), "all_gather: got ", inputs.size(), " inputs and ",
                       outputs.size(), " outputs; pass equally many");
  for (size_t i = 0; i < outputs.size(); ++i) check_all_gather(outputs[i], inputs[i], size_);
  Call call = call_of(OpType::COALESCED, TUTTI_TITLE("all_gather_into_tensor_coalesced"), options);
  call.inputs = inputs;
  call.outputs = {outputs};
  return start(std::move(call), [outputs, inputs](const CallContext& context) {
    for (size_t i = 0; i < inputs.size(); ++i) all_gather_dense(inputs[i], outputs[i], context);
  });
}

WorkPtr ProcessGroupTutti::allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                                               const c10d::AllgatherOptions& options) {
  TUTTI_CHECK_ARGUMENT(static_cast<int>(outputs.size()) == size_, "all_gather_coalesced: got ", outputs.size(),
                       " lists of outputs; pass ", size_, " (world_size)");
  for (const Tensors& list : outputs) {
    TUTTI_CHECK_ARGUMENT(list.size() == inputs.size(), "all_gather_coalesced: a list of outputs has ", list.size(),
                         " tensors, the list of inputs ", inputs.size(), "; both must have equally many");
    for (size_t i = 0; i < list.size(); ++i) {
      check_tensor("all_gather_coalesced", list[i]);
      check_same_type("all_gather_coalesced", list[i], inputs[i]);
      TUTTI_CHECK_ARGUMENT(list[i].numel() == inputs[i].numel(), "all_gather_coalesced: output ", i, " has ",
                           list[i].numel(), " elements, the input ", inputs[i].numel(),
                           "; both must have equally many");
    }
  }
  Call call = call_of(OpType::ALLGATHER_COALESCED, TUTTI_TITLE("all_gather"), options);
  call.inputs = inputs;
  call.outputs = outputs;
  return start(std::move(call), [outputs, inputs, rank = rank_](const CallContext& context) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      Tensors list;
      for (const Tensors& of_rank : outputs) list.push_back(of_rank[i]);
      all_gather_equal(inputs[i], list, rank, context);
    }
  });
}

WorkPtr ProcessGroupTutti::gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& options) {
  const at::Tensor& input = only_tensor("gather", inputs);
  check_root("gather", options.rootRank);
  const int root = static_cast<int>(options.rootRank);
  if (rank_ != root) check_no_list("gather", outputs);
  Call call = call_of(OpType::GATHER, TUTTI_TITLE("gather"), options);
  call.inputs = inputs;
  call.outputs = outputs;
  const Tensors list = rank_ == root ? root_list("gather", outputs, input, size_) : Tensors();
  return start(std::move(call), [input, list, root](const CallContext& context) {
    const Elements elements = elements_of(input.scalar_type());
    const Dense sent = Dense::for_reading(input);
    const at::Tensor flat = list.empty() ? at::Tensor() : BlockList(list, Dense::for_writing).empty_flat();
    check(tutti_gather(sent.data(), list.empty() ? nullptr : flat.data_ptr(), sent.count() * elements.per_element,
                       elements.type, root, context.comm, context.stream));
    int64_t offset = 0;
    for (const at::Tensor& output : list) {
      output.copy_(flat.narrow(0, offset, output.numel()).view(output.sizes()));
      offset += output.numel();
    }
  });
}

WorkPtr ProcessGroupTutti::scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& options) {
  const at::Tensor& output = only_tensor("scatter", outputs);
  check_root("scatter", options.rootRank);
  const int root = static_cast<int>(options.rootRank);
  if (rank_ != root) check_no_list("scatter", inputs);
  Call call = call_of(OpType::SCATTER, TUTTI_TITLE("scatter"), options);
  const Tensors list = rank_ == root ? root_list("scatter", inputs, output, size_) : Tensors();
  call.inputs = list;
  call.outputs = {outputs};
  return start(std::move(call), [output, list, root](const CallContext& context) {
    const Elements elements = elements_of(output.scalar_type());
    const at::Tensor flat = list.empty() ? at::Tensor() : BlockList(list, Dense::for_reading).flat_copy();
    const Dense received = Dense::for_writing(output);
    check(tutti_scatter(list.empty() ? nullptr : flat.data_ptr(), received.data(),
                        received.count() * elements.per_element, elements.type, root, context.comm, context.stream));
    received.finish();
  });
}

WorkPtr ProcessGroupTutti::alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_rows,
                                         std::vector<int64_t>& input_rows, const c10d::AllToAllOptions& options) {
  check_tensor("all_to_all", output);
  check_tensor("all_to_all", input);
  check_same_type("all_to_all", output, input);
  TUTTI_CHECK_ARGUMENT(output.dim() > 0 && input.dim() > 0,
                       "all_to_all: a tensor has no dimensions; pass tensors with rows");
  check_rows(output_rows, output, size_);
  check_rows(input_rows, input, size_);
  Call call = call_of(OpType::ALLTOALL_BASE, TUTTI_TITLE("all_to_all"), options);
  call.inputs = {input};
  call.outputs = {{output}};
  return start(std::move(call), [output, input, output_rows, input_rows, ranks = size_](const CallContext& context) {
    const Elements elements = elements_of(input.scalar_type());
    const Dense received = Dense::for_writing(output);
    Dense sent = Dense::for_reading(input);
    if (sent.overlaps(received)) sent = sent.copy();
    // Some ranks may pass rows and others none, so all make the same call.
    exchange(blocks_of_rows(sent, input_rows, ranks, elements.per_element),
             blocks_of_rows(received, output_rows, ranks, elements.per_element), elements.type, context);
    received.finish();
  });
}

WorkPtr ProcessGroupTutti::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) {
  TUTTI_CHECK_ARGUMENT(!inputs.empty(), "all_to_all: the list of inputs is empty; it must have ", size_,
                       " tensors (world_size)");
  check_list("all_to_all", inputs, inputs[0], size_);
  check_list("all_to_all", outputs, inputs[0], size_);
  Call call = call_of(OpType::ALLTOALL, TUTTI_TITLE("all_to_all"), options);
  call.inputs = inputs;
  call.outputs = {outputs};
  return start(std::move(call), [outputs, inputs](const CallContext& context) {
    const Elements elements = elements_of(inputs[0].scalar_type());
    const BlockList sent(inputs, Dense::for_reading);
    const BlockList received(outputs, Dense::for_writing);
    const std::optional<Blocks> received_blocks = received.in_place(elements);
    const bool must_copy = received_blocks && received.overlaps(sent);
    const std::optional<Blocks> sent_blocks = must_copy ? std::nullopt : sent.in_place(elements);
    const at::Tensor sent_flat = sent_blocks ? at::Tensor() : sent.flat_copy();
    const at::Tensor received_flat = received_blocks ? at::Tensor() : received.empty_flat();
    exchange(sent_blocks ? *sent_blocks : sent.in(sent_flat, elements),
             received_blocks ? *received_blocks : received.in(received_flat, elements), elements.type, context);
    if (!received_blocks) received.copy_from(received_flat);
    received.finish();
  });
}

}  // namespace tutti_torch
