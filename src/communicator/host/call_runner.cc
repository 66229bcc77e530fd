#include "src/communicator/host/call_runner.h"

#include <algorithm>

#include "src/communicator/planning/call_numbers.h"
#include "src/communicator/planning/planning.h"
#include "src/executor/factor.h"

namespace tutti {
namespace {

constexpr int index_of(Space space) { return static_cast<int>(space); }

}  // namespace

CallRunner::CallRunner(ControlPlane& control, Waiter& waiter, RunStatistics& statistics)
    : membership_(control.membership),
      current_(control.current),
      matching_(control.matching),
      waiter_(waiter),
      statistics_(statistics) {}

// ---- Calls of moves ----

Status CallRunner::run_brief(PreparedCall& prepared, const Call& call, const CommunicatorOptions& options) {
  begin(prepared, options);
  prepared.launch.self = {const_cast<std::byte*>(call.input), call.output};
  struct Hooks {
    CallRunner& runner;
    const CallRecord& record;
    bool announced = false;
    // Publishes the call record while the message is in flight. A poll right after the send would take the cache line
    // from the writer.
    void look() {
      runner.membership_.board.announce(runner.membership_.rank, record);
      announced = true;
    }
    Status await(const Blocked& blocked, Progress progress) {
      if (progress == Progress::mismatch) return runner.matching_.mismatch_with(blocked.operand->peer);
      return runner.waiter_.await_brief(blocked);
    }
  } hooks{*this, prepared.record};
  TUTTI_CHECK_OK(BriefRun(prepared.moves, signature_of(prepared.record), prepared.interpreter->backend(), hooks).run());
  if (!hooks.announced) hooks.look();
  return {};
}

// ---- Calls that the interpreter runs ----

// Sends first, and publishes the call record while the data is in flight.
Status CallRunner::run_at_once(PreparedCall& prepared, const Call& call, const CommunicatorOptions& options) {
  begin(prepared, options);
  bind_buffers(prepared, prepared, call, options.compression_rounding);
  const Progress progress = prepared.interpreter->advance();
  membership_.board.announce(membership_.rank, prepared.record);
  return progress == Progress::done && !membership_.spans_hosts ? Status() : wait_and_advance(prepared, progress);
}

Status CallRunner::complete(PreparedCall& prepared) {
  const Progress progress = prepared.interpreter->advance();
  return progress == Progress::done && !membership_.spans_hosts ? Status() : wait_and_advance(prepared, progress);
}

// Polls only the operand for which the step waits.
Status CallRunner::wait_and_advance(PreparedCall& prepared, Progress progress) {
  Interpreter<CpuBackend>& interpreter = *prepared.interpreter;
  for (; progress != Progress::done; progress = interpreter.advance()) {
    if (progress == Progress::mismatch) return matching_.mismatch_with(interpreter.blocked().operand->peer);
    TUTTI_CHECK_OK(waiter_.await(interpreter.blocked()));
  }
  return membership_.spans_hosts ? waiter_.drain() : Status();
}

void CallRunner::bind_buffers(const PreparedCall& announced, PreparedCall& chosen, const Call& call,
                              const RequestedRounding& requested) {
  Launch& launch = chosen.launch;
  launch.signature = signature_of(announced.record);
  launch.self = {const_cast<std::byte*>(call.input), call.output};
  if (chosen.compressed_fold) statistics_.add_compressed(chosen.carried, requested.rounding);
  if (chosen.copy_input && !chosen.corrects) {
    launch.self.input = room_for_copy(chosen.input_bytes);
    std::copy_n(call.input, chosen.input_bytes, launch.self.input);
  }
  if (chosen.scratch_bytes > 0) {
    if (scratch_.size() < chosen.scratch_bytes) scratch_.resize(chosen.scratch_bytes);
    launch.scratch = scratch_.data();
  }
  if (call.reduction == Reduction::pre_mul_sum) {
    Factor factor = {call.scalar, call.imaginary_scalar, call.integer_scalar};
    if (call.factor != nullptr) factor = factor_of(call.type, call.factor);
    chosen.interpreter->backend().scale(factor);
  }
  if (chosen.compressed_fold) bind_rounding(chosen, call, requested);
  chosen.interpreter->start();
}

std::byte* CallRunner::room_for_copy(std::uint64_t bytes) {
  if (input_copy_.size() < bytes) input_copy_.resize(bytes);
  return input_copy_.data();
}

// ---- Stochastic rounding and error feedback of compressed calls ----

void CallRunner::bind_rounding(PreparedCall& prepared, const Call& call, const RequestedRounding& requested) {
  const bool dithers = requested.rounding == Rounding::stochastic;
  prepared.interpreter->backend().round(dithers || prepared.corrects ? &prepared.rounding : nullptr);
  if (!dithers && !prepared.corrects) return;
  const CallNumbers numbers =
      numbers_of(call, membership_.rank, membership_.ranks, prepared.record.sequence, requested.seed);
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

void CallRunner::correct_input(PreparedCall& prepared, const Call& call, const Dither* dither) {
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
