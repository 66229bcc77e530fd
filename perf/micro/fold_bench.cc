// Benchmark of folds on one core: bytes read and written per second, by instruction set and size of operands.
//   fold_bench --benchmark_filter='fold/avx512/float32/sum/2to1'
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "src/executor/cpu/fold.h"

namespace tutti {
namespace {

constexpr std::size_t kLine = 64;

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::byte, Free>;

Memory zeros(std::size_t bytes) {
  const std::size_t rounded = (bytes + kLine - 1) / kLine * kLine;
  Memory memory(static_cast<std::byte*>(std::aligned_alloc(kLine, rounded)));
  for (std::size_t i = 0; i < rounded; ++i) memory.get()[i] = std::byte{0};
  return memory;
}

struct Case {
  DataType type;
  Reduction reduction;
  std::uint32_t sources, targets;
  bool streamed = false;
};

void measure(benchmark::State& state, const FoldKernels& kernels, const Case& what) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  std::vector<Memory> memory;
  std::vector<const std::byte*> sources;
  std::vector<std::byte*> targets;
  for (std::uint32_t i = 0; i < what.sources; ++i) sources.push_back(memory.emplace_back(zeros(bytes)).get());
  for (std::uint32_t i = 0; i < what.targets; ++i) targets.push_back(memory.emplace_back(zeros(bytes)).get());
  const FoldArguments arguments{.sources = sources.data(),
                                .targets = targets.data(),
                                .source_count = what.sources,
                                .target_count = what.targets,
                                .count = bytes / size_of(what.type),
                                .own = what.reduction == Reduction::pre_mul_sum ? 0 : FoldArguments::kNone,
                                .complete = true,
                                .ranks = 3,
                                .streamed_targets = what.streamed ? ~std::uint64_t{0} : 0};
  const FoldFunction function = kernels.find_fold(what.type, what.reduction);
  for (auto _ : state) {
    function(arguments);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes * (what.sources + what.targets)));
}

void add(const FoldKernels& kernels, const Case& what) {
  const std::string name = std::string("fold/") + kernels.name + "/" + tutti::name(what.type) + "/" +
                           tutti::name(what.reduction) + "/" + std::to_string(what.sources) + "to" +
                           std::to_string(what.targets) + (what.streamed ? "/streamed" : "");
  auto* benchmark = benchmark::RegisterBenchmark(
      name.c_str(), [&kernels, what](benchmark::State& state) { measure(state, kernels, what); });
  for (const std::int64_t bytes : {8, 64, 8 << 10, 256 << 10, 64 << 20}) benchmark->Arg(bytes);
}

void add_all(const FoldKernels& kernels) {
  constexpr DataType frequent[] = {DataType::float32, DataType::bfloat16, DataType::float16, DataType::float64,
                                   DataType::int32};
  for (const DataType type : frequent) {
    for (std::uint32_t targets = 1; targets <= 3; ++targets) add(kernels, {type, Reduction::sum, 2, targets});
    add(kernels, {type, Reduction::sum, 8, 1});
  }
  for (std::uint32_t i = 0; i < kDataTypes; ++i) {
    for (std::uint32_t k = 0; k < kReductions; ++k) {
      if (supports(DataType(i), Reduction(k))) add(kernels, {DataType(i), Reduction(k), 2, 1});
    }
  }
  for (std::uint32_t targets = 1; targets <= 3; ++targets)
    add(kernels, {DataType::float32, Reduction::sum, 1, targets});
  add(kernels, {.type = DataType::float32, .reduction = Reduction::sum, .sources = 1, .targets = 1, .streamed = true});
  add(kernels, {.type = DataType::float32, .reduction = Reduction::sum, .sources = 2, .targets = 1, .streamed = true});
}

}  // namespace
}  // namespace tutti

int main(int count, char** arguments) {
  const tutti::FoldKernelList list = tutti::fold_kernels();
  for (std::uint32_t i = 0; i < list.count; ++i) tutti::add_all(list.first[i]);
  benchmark::Initialize(&count, arguments);
  benchmark::RunSpecifiedBenchmarks();
}
