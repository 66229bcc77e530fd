// Measures the errors of compression: runs plans with all ranks in this thread, and compares the results with sums in
// float64. perf/accuracy runs this program and checks its results. Prints a JSON row per cell:
//   measure_rounding --data gaussian --types float32 --formats int8,int4 --algorithms ring --ranks 2,64
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "perf/rounding/errors.h"
#include "perf/rounding/request.h"
#include "perf/rounding/serial_ranks.h"
#include "src/compression/codec.h"

namespace tutti::rounding {
namespace {

// Results of a cell. Values without meaning for the collective are "null".
struct Cell {
  Errors errors;
  std::string identical = "null";   // All ranks have the same bits.
  std::string idempotent = "null";  // Compressing the result does not change it.
  bool repeated = false;            // Another order of ranks and more chunks give the same bits.
};

const char* word(bool value) { return value ? "true" : "false"; }

Problem problem_of(const Request& request, const Algorithm& algorithm, Rank ranks) {
  Problem problem = {.collective = request.collective, .ranks = ranks, .groups = {}};
  Rank on_each = 1;  // Ranks of each host: about as many as there are hosts.
  while (on_each * on_each * 4 <= ranks) on_each *= 2;
  if (requires_hosts(algorithm, request.collective) && ranks % on_each == 0)
    problem.groups = {std::vector<Rank>(ranks / on_each, on_each)};
  return problem;
}

// Returns the elements per block with which the largest buffer has the requested number of elements.
std::uint64_t count_of(const Request& request, Rank ranks) {
  const bool has_many =
      request.collective == Collective::reduce_scatter || request.collective == Collective::all_gather;
  const std::uint64_t count = request.elements / (has_many ? ranks : 1);
  return std::max<std::uint64_t>(count / kCompressionGroup, 1) * kCompressionGroup;
}

// The output buffers of all ranks.
class Outputs {
 public:
  Outputs(const Problem& problem, DataType type, std::uint64_t count) {
    for (Rank rank = 0; rank < problem.ranks; ++rank)
      memory_.emplace_back(output_blocks(problem, rank) * count * size_of(type));
  }

  std::byte* of(Rank rank) { return memory_[rank].data(); }
  bool identical() const {
    for (const auto& memory : memory_) {
      if (memory != memory_[0]) return false;
    }
    return true;
  }
  // FNV-1a hash of the 64-bit words.
  std::uint64_t digest() const {
    std::uint64_t digest = 14695981039346656037ULL;
    for (const auto& memory : memory_) {
      for (std::size_t i = 0; i + sizeof digest <= memory.size(); i += sizeof digest) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, memory.data() + i, sizeof bits);
        digest = (digest ^ bits) * 1099511628211ULL;
      }
    }
    return digest;
  }

 private:
  std::vector<std::vector<std::byte>> memory_;
};

bool is_exact(CompressionFormat format, DataType type, const std::vector<float>& values) {
  const std::vector<float> again = rounded(format, type, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!(held(type, again[i]) == values[i]) && !(std::isnan(again[i]) && std::isnan(values[i]))) return false;
  }
  return true;
}

Result<Cell> measure(SerialRanks& serial_ranks, const Problem& problem, Exact& exact, const TensorFormat& tensor,
                     std::uint64_t count) {
  Outputs outputs(problem, tensor.type, count);
  std::vector<RankBuffers> buffers;
  for (Rank rank = 0; rank < problem.ranks; ++rank) buffers.push_back({exact.input(rank), outputs.of(rank)});
  TUTTI_CHECK_OK(serial_ranks.run(tensor, buffers, {.chunks = 2, .backwards = true}));
  const std::uint64_t before = outputs.digest();
  TUTTI_CHECK_OK(serial_ranks.run(tensor, buffers, {}));
  Cell cell;
  cell.repeated = outputs.digest() == before;
  const bool is_kept = rounded_stores_of(problem.collective) != RoundedStores::none;
  if (is_kept) cell.identical = word(outputs.identical());
  const bool alike = cell.identical == "true";
  for (Rank rank = 0; rank < (alike ? 1 : problem.ranks); ++rank) {
    const std::span<const double> results = exact.output(rank);
    const std::vector<float> values = read(tensor.type, outputs.of(rank), results.size());
    add_errors(exact, results, values, tensor.format, cell.errors);
    if (is_kept && cell.idempotent != "false") cell.idempotent = word(is_exact(tensor.format, tensor.type, values));
  }
  return cell;
}

std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[32];
  std::snprintf(text, sizeof text, "%.7g", value);
  return text;
}

constexpr const char* kColumns =
    "\"data\", \"type\", \"format\", \"algorithm\", \"ranks\", \"elements\", \"error\", \"error_of_terms\", \"peak\", "
    "\"bias\", \"cosine\", \"roundings\", \"growth\", \"type_error\", \"expected\", \"input_error\", \"output_error\", "
    "\"identical\", \"repeated\", \"idempotent\", \"lost\", \"wrong\", \"spoilt\", \"stray\"";

// Returns the error of the final rounding to the tensor's type.
double type_error(DataType type) { return compression_error(memory_format(type)); }

class Report {
 public:
  Report() { std::printf("{\"columns\": [%s],\n \"cells\": [", kColumns); }
  ~Report() { std::printf("]}\n"); }

  void add(const Request& request, const Terms& terms, const TensorFormat& tensor, const std::string& head,
           const Cell& cell, const std::vector<double>& figures) {
    const Errors& errors = cell.errors;
    std::printf("%s\n  [\"%s\", \"%s\", \"%s\", %s, %llu", first_ ? "" : ",", name(terms.data), name(terms.type),
                name(tensor.format), head.c_str(), static_cast<unsigned long long>(request.elements));
    for (const double figure : figures) std::printf(", %s", number(figure).c_str());
    std::printf(", %s, %s, %s", cell.identical.c_str(), word(cell.repeated), cell.idempotent.c_str());
    for (const std::uint64_t count : {errors.lost, errors.wrong, errors.spoilt, errors.stray})
      std::printf(", %llu", static_cast<unsigned long long>(count));
    std::printf("]");
    std::fflush(stdout);
    first_ = false;
  }

 private:
  bool first_ = true;
};

struct PreparedAlgorithm {
  const Algorithm* algorithm;
  Problem problem;
  std::unique_ptr<SerialRanks> serial_ranks;
};

Status measure_data(const Request& request, const Terms& terms, std::vector<PreparedAlgorithm>& prepared,
                    Report& report) {
  const std::uint64_t count = count_of(request, terms.ranks);
  const Problem problem = {.collective = request.collective, .ranks = terms.ranks, .groups = {}};
  Exact exact(problem, terms, count);
  for (const CompressionFormat format : request.formats) {
    if (compressed_bytes(format) >= kCompressionGroup * size_of(terms.type)) continue;  // Not compressed.
    const Roundings own = exact.roundings(format);
    const TensorFormat tensor = {format, terms.type};
    for (PreparedAlgorithm& each : prepared) {
      const Cell cell = TUTTI_TRY(measure(*each.serial_ranks, each.problem, exact, tensor, count));
      const Errors& errors = cell.errors;
      const double roundings = each.algorithm->cost_law(each.problem).rounded;
      const double expected = compression_error_after(format, roundings);
      const double type = type_error(terms.type);
      const double of_terms = errors.errors == 0 ? 0 : std::sqrt(errors.errors / exact.squares());
      const std::string head = "\"" + std::string(each.algorithm->name()) + "\", " + std::to_string(terms.ranks);
      report.add(request, terms, tensor, head, cell,
                 {errors.relative(), of_terms, errors.peak, errors.bias(), errors.cosine(), roundings,
                  expected / compression_error(format), type, std::hypot(expected, type), own.input, own.output});
    }
  }
  return {};
}

Status measure_all(const Request& request) {
  Report report;
  for (const Rank ranks : request.ranks) {
    std::vector<PreparedAlgorithm> prepared;
    for (const Algorithm* algorithm : request.algorithms) {
      const Problem problem = problem_of(request, *algorithm, ranks);
      if (!algorithm->supports(problem)) continue;
      prepared.push_back(
          {algorithm, problem, std::make_unique<SerialRanks>(*algorithm, problem, count_of(request, ranks))});
    }
    for (const Data data : request.data) {
      for (const DataType type : request.types) {
        TUTTI_CHECK_OK(measure_data(request, {data, type, ranks, request.seed}, prepared, report));
      }
    }
  }
  return {};
}

}  // namespace
}  // namespace tutti::rounding

int main(int count, char** arguments) {
  auto request = tutti::rounding::parse_request(count, arguments);
  const tutti::Status status =
      request.ok() ? tutti::rounding::measure_all(request.value()) : std::move(request).status();
  if (status.ok()) return 0;
  std::fprintf(stderr, "measure_rounding: %s\n", status.message().c_str());
  return 2;
}
