// What a call asks of rounding beyond the format: random numbers, and error feedback.
#include "src/communicator/host/host_communicator.h"
#include "src/communicator/planning/planning.h"
#include "src/wire/philox.h"

namespace tutti {
namespace {

std::uint64_t joined(std::uint32_t low, std::uint32_t high) { return std::uint64_t{high} << 32 | low; }

constexpr int index_of(Place place) { return static_cast<int>(place); }

}  // namespace

void HostCommunicator::bind_rounding(Prepared& prepared, const Call& call, const AskedRounding& asked) {
  ran_rounding_.store(asked.rounding, std::memory_order_relaxed);
  const bool dithers = asked.rounding == Rounding::stochastic;
  prepared.interpreter->machine().round(dithers || prepared.corrects ? &prepared.rounding : nullptr);
  if (!dithers && !prepared.corrects) return;
  // Ranks draw numbers of their own, and each call others: so errors are independent, and the same in every run.
  const std::uint64_t sequence = prepared.record.sequence;
  const PhiloxBlock keys = philox(
      {{rank_, static_cast<std::uint32_t>(sequence), static_cast<std::uint32_t>(sequence >> 32), 0}}, asked.seed);
  const Dither of_inputs = {joined(keys.words[2], keys.words[3]), 0};
  if (prepared.corrects) correct_input(prepared, call, dithers ? &of_inputs : nullptr);

  const Problem problem = problem_of(call, ranks_);
  const std::uint64_t inputs = input_blocks(problem, rank_), outputs = output_blocks(problem, rank_);
  CallRounding& rounding = prepared.rounding;
  rounding = {.dithers = dithers,
              .key = joined(keys.words[0], keys.words[1]),
              .losses = prepared.corrects ? call.residual : nullptr,
              .elements = std::max(inputs, outputs) * call.count,
              .element_bytes = size_of(call.type)};
  rounding.begins[index_of(Place::input)] = prepared.launch.self.input;
  rounding.begins[index_of(Place::output)] = prepared.launch.self.output;
  rounding.begins[index_of(Place::scratch)] = prepared.launch.scratch;
  if (outputs > inputs) rounding.firsts[index_of(Place::input)] = rank_ * call.count;
  if (inputs > outputs) rounding.firsts[index_of(Place::output)] = rank_ * call.count;
}

void HostCommunicator::correct_input(Prepared& prepared, const Call& call, const Dither* dither) {
  const bool in_place = prepared.in_place && !prepared.copy_input;
  std::byte* const held = in_place ? call.output : room_for_copy(prepared.input_bytes);
  const std::uint64_t block_bytes = call.count * size_of(call.type);
  const WireEncoder& encoder = prepared.wire_fold->encoder();
  for (std::uint64_t block = 0; block * block_bytes < prepared.input_bytes; ++block) {
    const std::uint64_t first = block * call.count;
    const Dither here = dither == nullptr ? Dither{} : Dither{dither->seed, first};
    encoder.correct(call.input + block * block_bytes, call.count, call.residual + first, held + block * block_bytes,
                    dither == nullptr ? nullptr : &here);
  }
  prepared.launch.self.input = held;
}

}  // namespace tutti
