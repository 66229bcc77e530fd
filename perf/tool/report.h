// Output of rank 0: nccl-tests' table and footer, and the same as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "perf/tool/collective.h"
#include "perf/tool/noise.h"
#include "perf/tool/options.h"

namespace perf {

struct Timing {
  bool measured = false;  // False: the collective has no in-place form.
  bool checked = false;
  double time_us = 0;  // Mean over the iterations, of the rank that -a picks.
  double min_us = 0;   // Fastest and median iteration of the slowest rank.
  double median_us = 0;
  double spell_us = 0;      // Median of spells of 16 consecutive iterations: ranks run ahead of each other, and wait.
  std::uint32_t calls = 1;  // Per iteration.
  double bus_bandwidth = 0;
  double algorithm_bandwidth = 0;   // Both in GB/s of 1e9 bytes.
  std::uint64_t wrong = 0;          // Elements, of all ranks and checked runs.
  std::string algorithm, protocol;  // Last ones on rank 0; empty: there was nothing to do, or to choose.
  // Timed iterations whose last call used another algorithm, because autotuning tried candidates.
  std::uint32_t iterations_otherwise = 0;
  std::string compression = "raw";  // Format of messages.
  double error = 0;                 // Relative root-mean-square error of compressed results.
  double expected_error = 0;        // Error that the library predicts.
  Squares squares;

  bool rounds() const { return compression != "raw"; }
};

struct Row {
  std::uint64_t bytes = 0, count = 0;
  const char* type = "";
  const char* operation = "";  // "none": no reduction.
  int root = -1;
  Timing out_of_place, in_place;
};

struct RankLocation {  // Location of one rank.
  int pid = 0;
  int core = 0;   // -1: not pinned.
  int cores = 0;  // Number of cores that the rank may use; 0: unknown.
  char host[64] = {};
  char memory[96] = {};  // "device 0 NVIDIA H200"
};

// Totals of all ranks' compressed calls.
struct CompressedCalls {
  std::uint64_t calls = 0;
  std::uint64_t element_bytes = 0;  // Without compression.
  std::uint64_t message_bytes = 0;  // As sent.
};

// Fails unless the JSON file is writable, before measurements begin.
void check_output(const Options& options);

class Report {
 public:
  Report(const Collective& collective, const Options& options, std::string launcher);

  void begin(const std::vector<RankLocation>& locations);
  void add(const Row& row);
  void compressed(const CompressedCalls& compressed) { compressed_ = compressed; }
  // True if nothing was wrong.
  bool end();
  // A line on stderr that the next row replaces; only on a terminal, and only if the run is slow.
  void progress(std::uint64_t bytes, const char* what);

 private:
  void print_pinning() const;
  void print_choices() const;
  void print_autotuning() const;
  void print_empty_rows() const;
  void write_json(double average) const;

  const Collective& collective_;
  const Options& options_;
  std::string launcher_;
  std::vector<RankLocation> locations_;
  std::vector<Row> rows_;
  CompressedCalls compressed_;
  std::uint64_t wrong_ = 0;
  double last_progress_s_ = 0;
  bool shows_progress_ = false;
};

}  // namespace perf
