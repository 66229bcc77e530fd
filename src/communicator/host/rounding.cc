// Stochastic rounding and error feedback of compressed calls.
#include "src/communicator/host/host_communicator.h"
#include "src/communicator/planning/call_numbers.h"

namespace tutti {
namespace {

constexpr int index_of(Space space) { return static_cast<int>(space); }

}  // namespace

void HostCommunicator::bind_rounding(Prepared& prepared, const Call& call, const RequestedRounding& requested) {
  ran_rounding_.store(requested.rounding, std::memory_order_relaxed);
  const bool dithers = requested.rounding == Rounding::stochastic;
  prepared.interpreter->backend().round(dithers || prepared.corrects ? &prepared.rounding : nullptr);
  if (!dithers && !prepared.corrects) return;
  const CallNumbers numbers = numbers_of(call, rank_, ranks_, prepared.record.sequence, requested.seed);
  const Dither of_inputs = {numbers.input_key, 0};
  if (prepared.corrects) correct_input(prepared, call, dithers ? &of_inputs : nullptr);

  CallRounding& rounding = prepared.rounding;
  rounding = {.dithers = dithers,
              .key = numbers.key,
              .quantization_errors = prepared.corrects ? call.residual : nullptr,
              .elements = numbers.elements,
              .element_bytes = size_of(call.type)};
  rounding.begins[index_of(Space::input)] = prepared.launch.self.input;
  rounding.begins[index_of(Space::output)] = prepared.launch.self.output;
  rounding.begins[index_of(Space::scratch)] = prepared.launch.scratch;
  rounding.firsts[index_of(Space::input)] = numbers.first_input;
  rounding.firsts[index_of(Space::output)] = numbers.first_output;
}

void HostCommunicator::correct_input(Prepared& prepared, const Call& call, const Dither* dither) {
  const bool in_place = prepared.in_place && !prepared.copy_input;
  std::byte* const held = in_place ? call.output : room_for_copy(prepared.input_bytes);
  const std::uint64_t block_bytes = call.count * size_of(call.type);
  const SlotEncoder& encoder = prepared.compressed_fold->encoder();
  for (std::uint64_t block = 0; block * block_bytes < prepared.input_bytes; ++block) {
    const std::uint64_t first = block * call.count;
    const Dither here = dither == nullptr ? Dither{} : Dither{dither->seed, first};
    encoder.correct(call.input + block * block_bytes, call.count, call.residual + first, held + block * block_bytes,
                    dither == nullptr ? nullptr : &here);
  }
  prepared.launch.self.input = held;
}

}  // namespace tutti
