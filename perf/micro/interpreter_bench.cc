// Benchmark of the interpreter's overhead on one core. A vector is copied chunk by chunk into a slot, and added from
// there to the output. `interpreted` runs a plan of two steps; `by_hand` runs a hand-written loop with the same folds
// and counters. Steps per second count both steps.
//   interpreter_bench --benchmark_filter=4096
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>

#include "src/executor/compiled_plan.h"
#include "src/executor/cpu/backend.h"
#include "src/executor/straighten.h"

namespace tutti {
namespace {

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};

// A lane with both ends in this process.
struct Loopback {
  explicit Loopback(std::uint32_t slot_bytes)
      : slots(static_cast<std::byte*>(std::aligned_alloc(4096, std::size_t{4} * slot_bytes))) {
    writer.view = {
        .slots = slots.get(), .words = &words, .credits = &credits, .slot_bytes = slot_bytes, .slot_shift = 2};
    reader.view = writer.view;
  }
  std::unique_ptr<std::byte, Free> slots;
  LaneWords words = {};
  LaneCredits credits = {};
  LaneState writer, reader;
};

struct Vectors {
  explicit Vectors(std::size_t bytes)
      : input(static_cast<std::byte*>(std::aligned_alloc(4096, bytes))),
        output(static_cast<std::byte*>(std::aligned_alloc(4096, bytes))) {
    std::fill_n(input.get(), bytes, std::byte{0});
    std::fill_n(output.get(), bytes, std::byte{0});
  }
  std::unique_ptr<std::byte, Free> input, output;
};

Plan there_and_back() {
  Plan plan;
  plan.shape = {.units = 1, .scratch = 0, .rounds = 2, .stages = {0, 1}};
  plan.steps = Steps(0);
  plan.steps.send(input(0), 1);
  plan.steps.fold({lane(1, 1), input(0)}, {output(0)});
  plan.rounds = {0, 1, 2};
  return plan;
}

void count_steps(benchmark::State& state) {
  const std::int64_t steps = 2 * (state.range(0) / state.range(1));
  state.counters["steps"] =
      benchmark::Counter(static_cast<double>(state.iterations() * steps), benchmark::Counter::kIsRate);
}

void interpreted(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const auto chunk = static_cast<std::uint32_t>(state.range(1));
  Loopback lane(chunk);
  const Vectors vectors(bytes);
  const CompiledPlan compiled(there_and_back(),
                              [&](const Operand&, bool sends) { return sends ? &lane.writer : &lane.reader; });
  Launch launch;
  launch.self = {vectors.input.get(), vectors.output.get()};
  launch.element_bytes = sizeof(float);
  launch.input.count = launch.output.count = bytes / sizeof(float);
  launch.loop.chunks = static_cast<std::uint32_t>(bytes / chunk);
  launch.cut = {.units = 1, .parts = launch.loop.chunks, .granule = 16};
  launch.slice_elements = chunk / sizeof(float);
  const StraightProgram straight = straighten(compiled.program(), launch, {.copies = true});
  launch.straight = straight.view();
  BackendMemory memory;
  memory.reserve(compiled.program().widest);
  Interpreter<CpuBackend> interpreter(compiled.program(), launch,
                                      CpuBackend(memory, find_fold(DataType::float32, Reduction::sum), {}),
                                      memory.pointers());
  for (auto _ : state) {
    interpreter.start();
    if (interpreter.advance() != Progress::done) state.SkipWithError("the plan deadlocks");
    benchmark::ClobberMemory();
  }
  count_steps(state);
}

void by_hand(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const auto chunk = static_cast<std::uint32_t>(state.range(1));
  Loopback lane(chunk);
  const Vectors vectors(bytes);
  const FoldFunction fold = find_fold(DataType::float32, Reduction::sum);
  for (auto _ : state) {
    for (std::size_t at = 0; at < bytes; at += chunk) {
      const std::byte* sources[] = {vectors.input.get() + at, vectors.input.get() + at};
      std::byte* slot = slot_of(lane.writer.view, lane.writer.next);
      std::byte* target = vectors.output.get() + at;
      fold(
          {.sources = sources, .targets = &slot, .source_count = 1, .target_count = 1, .count = chunk / sizeof(float)});
      simple_post(lane.writer, {}, 0);
      if (!simple_arrived(lane.reader)) state.SkipWithError("no message arrived");
      sources[0] = slot;
      fold({.sources = sources,
            .targets = &target,
            .source_count = 2,
            .target_count = 1,
            .count = chunk / sizeof(float)});
      take(lane.reader);
    }
    benchmark::ClobberMemory();
  }
  count_steps(state);
}

BENCHMARK(interpreted)->Args({64 << 10, 4096})->Args({1 << 20, 4096})->Args({1 << 20, 65536});
BENCHMARK(by_hand)->Args({64 << 10, 4096})->Args({1 << 20, 4096})->Args({1 << 20, 65536});

}  // namespace
}  // namespace tutti

BENCHMARK_MAIN();
