// Rounding of a call beyond its format: random numbers and error feedback.
#include <cstring>

#include "src/communicator/device/device_communicator.h"
#include "src/communicator/planning/call_numbers.h"

namespace tutti {

bool DeviceCommunicator::uses_rounding(const Prepared& prepared, const RequestedRounding& requested) {
  if (prepared.entry.call.task.compression == CompressionFormat::none) return false;
  return prepared.corrects || requested.rounding == Rounding::stochastic;
}

// A call has the same number on host memory, where joining takes no collectives; joining_ is therefore subtracted.
Status DeviceCommunicator::bind_rounding(const Prepared& prepared, const Call& call, const RequestedRounding& requested,
                                         DeviceJob& job) {
  const bool dithers = requested.rounding == Rounding::stochastic;
  const CallNumbers numbers = numbers_of(call, rank_, ranks_, prepared.record.sequence - joining_, requested.seed);
  KernelRounding rounding = {.key = numbers.key,
                             .input_key = numbers.input_key,
                             .quantization_errors = prepared.corrects ? call.residual : nullptr,
                             .elements = numbers.elements,
                             .firsts = {numbers.first_input, numbers.first_output},
                             .dithers = dithers ? 1U : 0U};
  KernelCall& entry = job.entry.call;
  entry.rounding = TUTTI_TRY(show_rounding(rounding, job.entry.channels));
  if (!prepared.corrects) return {};
  job.correct = {.input = call.input,
                 .held = const_cast<std::byte*>(entry.self.input),
                 .residual = call.residual,
                 .rounding = entry.rounding,
                 .count = call.count,
                 .blocks = input_blocks(problem_of(call, ranks_), rank_),
                 .compression = entry.task.compression,
                 .type = call.type};
  return {};
}

// Returns a chunk of device memory for this call, which is reused after a later call has begun. A captured call keeps
// its chunk for the lifetime of the graph, and counts its runs there per channel. Without the count, every replay would
// draw the same random numbers, and the mean of the results would be biased.
Result<const KernelRounding*> DeviceCommunicator::show_rounding(KernelRounding rounding, std::uint32_t channels) {
  std::byte bytes[RoundingChunks::kBytes] = {};
  const bool counts = order_.is_captured() && rounding.dithers != 0;
  const std::size_t used = sizeof rounding + (counts ? channels * sizeof(std::uint32_t) : 0);
  std::byte* memory = TUTTI_TRY(rounding_chunks_.take(home()));
  if (counts) rounding.runs = reinterpret_cast<std::uint32_t*>(memory + sizeof rounding);
  std::memcpy(bytes, &rounding, sizeof rounding);
  TUTTI_CHECK_OK(device().upload(memory, std::span(bytes, used)));
  if (!order_.is_captured()) {
    home().retire(memory, RoundingChunks::kBytes, order_.number());
  } else {
    TUTTI_CHECK_OK(device().keep_for_graph(order_.stream(), rounding_chunks_.lease(memory)));
  }
  return reinterpret_cast<const KernelRounding*>(memory);
}

}  // namespace tutti
