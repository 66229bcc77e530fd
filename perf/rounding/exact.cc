#include "perf/rounding/exact.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "src/base/numeric.h"
#include "src/compression/codec.h"

namespace tutti::rounding {
namespace {

std::vector<std::byte> stored(DataType type, const std::vector<float>& values) {
  std::vector<std::byte> memory(values.size() * size_of(type));
  if (type == DataType::float32) {
    std::memcpy(memory.data(), values.data(), memory.size());
    return memory;
  }
  auto* halves = reinterpret_cast<std::uint16_t*>(memory.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    halves[i] = type == DataType::float16 ? from_float<Float16>(values[i]).bits : from_float<BFloat16>(values[i]).bits;
  }
  return memory;
}

// Sums of the squares of errors and of values.
struct Sums {
  double errors = 0;
  double values = 0;

  void add(double exact, double value) {
    if (!std::isfinite(exact)) return;
    errors += (value - exact) * (value - exact);
    values += exact * exact;
  }
  double error() const { return errors == 0 ? 0 : std::sqrt(errors / values); }
};

}  // namespace

std::vector<float> rounded(CompressionFormat format, DataType type, const std::vector<float>& values) {
  const Codec codec = find_codec(format);
  std::vector<std::byte> message(compression_groups(values.size()) * compressed_bytes(format));
  std::vector<float> decoded(values.size());
  codec.encode(values.data(), values.size(), message.data(), range_of(type), nullptr);
  codec.decode(message.data(), decoded.size(), decoded.data());
  return decoded;
}

std::vector<float> read(DataType type, const std::byte* memory, std::uint64_t count) {
  std::vector<float> values(count);
  if (type == DataType::float32) {
    std::memcpy(values.data(), memory, count * sizeof(float));
    return values;
  }
  const auto* halves = reinterpret_cast<const std::uint16_t*>(memory);
  for (std::uint64_t i = 0; i < count; ++i) {
    values[i] = type == DataType::float16 ? to_float(Float16{halves[i]}) : to_float(BFloat16{halves[i]});
  }
  return values;
}

Exact::Exact(const Problem& problem, const Terms& terms, std::uint64_t count)
    : problem_(problem), type_(terms.type), count_(count), inputs_(problem.ranks) {
  const bool sums = reduces(problem.collective);
  for (Rank rank = 0; rank < problem.ranks; ++rank) {
    const std::vector<float> values = numbers(terms, rank, input_blocks(problem, rank) * count);
    const std::size_t first = sums ? 0 : results_.size();
    results_.resize(std::max(results_.size(), first + values.size()));
    peaks_.resize((results_.size() + kMinScaleBlock - 1) / kMinScaleBlock);
    for (std::size_t i = 0; i < values.size(); ++i) {
      results_[first + i] += values[i];
      if (!std::isfinite(values[i])) continue;
      squares_ += static_cast<double>(values[i]) * values[i];
      float& peak = peaks_[(first + i) / kMinScaleBlock];
      peak = std::max(peak, std::fabs(values[i]));
    }
    inputs_[rank] = stored(terms.type, values);
  }
  for (std::size_t i = 0; i < results_.size(); ++i) {
    float& peak = peaks_[i / kMinScaleBlock];
    if (std::isfinite(results_[i])) peak = std::max(peak, static_cast<float>(std::fabs(results_[i])));
  }
}

std::span<const double> Exact::output(Rank rank) const {
  const std::uint64_t length = output_blocks(problem_, rank) * count_;
  const std::uint64_t first = problem_.collective == Collective::reduce_scatter ? rank * count_ : 0;
  return std::span(results_).subspan(length == 0 ? 0 : first, length);
}

Roundings Exact::roundings(CompressionFormat format) const {
  Sums input, output;
  for (const std::vector<std::byte>& memory : inputs_) {
    const std::vector<float> values = read(type_, memory.data(), memory.size() / size_of(type_));
    const std::vector<float> sent = rounded(format, type_, values);
    for (std::size_t i = 0; i < values.size(); ++i) input.add(values[i], sent[i]);
  }
  const std::vector<float> sent = rounded(format, type_, {results_.begin(), results_.end()});
  for (std::size_t i = 0; i < results_.size(); ++i) output.add(results_[i], held(type_, sent[i]));
  return {input.error(), output.error()};
}

}  // namespace tutti::rounding
