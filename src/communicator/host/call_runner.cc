#include "src/communicator/host/call_runner.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <string>

#include "src/base/factor.h"
#include "src/base/no_cancellation.h"
#include "src/communicator/host/collective_operation.h"
#include "src/communicator/planning/call_numbers.h"

namespace tutti {
namespace {

constexpr int index_of(Space space) { return static_cast<int>(space); }

}  // namespace

// ---- Calls of moves ----

Status CallRunner::run_brief(PreparedCall& prepared, PlanRun& run, const Call& call,
                             const CommunicatorOptions& options) {
  begin(prepared, options);
  run.launch.self = {.input = const_cast<std::byte*>(call.input), .output = call.output};
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
      if (progress == Progress::mismatch) return runner.control_.matching.mismatch_with(blocked.operand->peer);
      return runner.waiter_.await_brief(blocked);
    }
  } hooks{*this, prepared.record};
  TUTTI_CHECK_OK(BriefRun(run.moves, signature_of(prepared.record), run.interpreter->backend(), hooks).run());
  if (!hooks.announced) hooks.look();
  return {};
}

// ---- Calls that the interpreter runs ----

Status CallRunner::run(PreparedCall& prepared, const Call& call, const CommunicatorOptions& options) {
  if (PlanRun* const brief = brief_run_of(prepared)) return run_brief(prepared, *brief, call, options);
  const NoCancellation until_return;
  // The usual case: lanes are connected.
  const OverLanes* over_lanes = std::get_if<OverLanes>(&prepared.run);
  if (over_lanes != nullptr && (*over_lanes)->interpreter) return run_at_once(prepared, **over_lanes, call, options);
  CollectiveOperation operation(*this, prepared, call, options);
  return operation.complete();
}

// Sends first, and publishes the call record while the data is in flight.
Status CallRunner::run_at_once(PreparedCall& prepared, PlanRun& run, const Call& call,
                               const CommunicatorOptions& options) {
  begin(prepared, options);
  TUTTI_CHECK_OK(bind_buffers(prepared.record, run, call, options.compression_rounding));
  const Progress progress = run.interpreter->advance();
  membership_.board.announce(membership_.rank, prepared.record);
  return progress == Progress::done && !membership_.spans_hosts ? Status() : wait_and_advance(run, progress);
}

Status CallRunner::complete(PlanRun& run) {
  const Progress progress = run.interpreter->advance();
  return progress == Progress::done && !membership_.spans_hosts ? Status() : wait_and_advance(run, progress);
}

// Polls only the operand for which the step waits.
Status CallRunner::wait_and_advance(PlanRun& run, Progress progress) {
  Interpreter<CpuBackend>& interpreter = *run.interpreter;
  for (; progress != Progress::done; progress = interpreter.advance()) {
    if (progress == Progress::mismatch) return control_.matching.mismatch_with(interpreter.blocked().operand->peer);
    TUTTI_CHECK_OK(waiter_.await(interpreter.blocked()));
  }
  return membership_.spans_hosts ? waiter_.drain() : Status();
}

Status CallRunner::bind_buffers(const CallRecord& record, PlanRun& run, const Call& call,
                                const RequestedRounding& requested) {
  try {
    bind(record, run, call, requested);
    return {};
  } catch (const std::bad_alloc&) {  // The usual cause is a wrong count.
    return {Code::system,
            "out of memory in " + describe(record) + " #" + std::to_string(record.sequence) + membership_.name() +
                ": check the count",
            ENOMEM};
  }
}

void CallRunner::bind(const CallRecord& record, PlanRun& run, const Call& call, const RequestedRounding& requested) {
  Launch& launch = run.launch;
  launch.signature = signature_of(record);
  launch.self = {.input = const_cast<std::byte*>(call.input), .output = call.output};
  if (run.compressed_fold) {
    statistics_.add(run.carried);
    statistics_.record(run.plan.runs.with(requested.rounding));
  }
  if (run.copy_input && !run.has_residual) {
    launch.self.input = room_for_copy(run.input_bytes);
    std::copy_n(call.input, run.input_bytes, launch.self.input);
  }
  if (run.scratch_bytes > 0) {
    if (scratch_.size() < run.scratch_bytes) scratch_.resize(run.scratch_bytes);
    launch.self.scratch = scratch_.data();
  }
  if (call.reduction == Reduction::pre_mul_sum) {
    Factor factor = {call.scalar, call.imaginary_scalar, call.integer_scalar};
    if (call.factor != nullptr) factor = factor_of(call.type, call.factor);
    run.interpreter->backend().scale(factor);
  }
  if (run.compressed_fold) bind_rounding(record.sequence, run, call, requested);
  run.interpreter->start();
}

std::byte* CallRunner::room_for_copy(std::uint64_t bytes) {
  if (input_copy_.size() < bytes) input_copy_.resize(bytes);
  return input_copy_.data();
}

// ---- Stochastic rounding and error feedback of compressed calls ----

void CallRunner::bind_rounding(std::uint64_t sequence, PlanRun& run, const Call& call,
                               const RequestedRounding& requested) {
  const bool dithers = requested.rounding == Rounding::stochastic;
  run.interpreter->backend().round(dithers || run.has_residual ? &run.rounding : nullptr);
  if (!dithers && !run.has_residual) return;
  const CallNumbers numbers = numbers_of(call, membership_.rank, membership_.ranks, sequence, requested.seed);
  const Dither of_inputs = {numbers.input_key, 0};
  if (run.has_residual) apply_residual(run, call, dithers ? &of_inputs : nullptr);

  CallRounding& rounding = run.rounding;
  rounding = {.dithers = dithers,
              .key = numbers.key,
              .quantization_errors = run.has_residual ? call.residual : nullptr,
              .elements = numbers.elements,
              .element_bytes = size_of(call.type)};
  rounding.begins[index_of(Space::input)] = run.launch.self.input;
  rounding.begins[index_of(Space::output)] = run.launch.self.output;
  rounding.begins[index_of(Space::scratch)] = run.launch.self.scratch;
  rounding.firsts[index_of(Space::input)] = numbers.first_input;
  rounding.firsts[index_of(Space::output)] = numbers.first_output;
}

void CallRunner::apply_residual(PlanRun& run, const Call& call, const Dither* dither) {
  const bool in_place = run.in_place && !run.copy_input;
  std::byte* const held = in_place ? call.output : room_for_copy(run.input_bytes);
  const std::uint64_t block_bytes = call.count * size_of(call.type);
  const SlotEncoder& encoder = run.compressed_fold->encoder();
  for (std::uint64_t block = 0; block * block_bytes < run.input_bytes; ++block) {
    const std::uint64_t first = block * call.count;
    const Dither here = dither == nullptr ? Dither{} : Dither{dither->seed, first};
    encoder.apply_residual(call.input + block * block_bytes, call.count, call.residual + first,
                           held + block * block_bytes, dither == nullptr ? nullptr : &here);
  }
  run.launch.self.input = held;
}

}  // namespace tutti
