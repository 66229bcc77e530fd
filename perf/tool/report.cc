#include "perf/tool/report.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>

#include "perf/tool/fail.h"
#include "perf/tool/json.h"
#include "perf/tool/spans.h"

namespace perf {
namespace {

double now_s() {
  timespec time = {};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// The most digits that fit the column; one more than nccl-tests where a call takes less than 10 us.
std::string fitting(double value, int width) {
  char text[64];
  for (const char* format : {"%.3f", "%.2f", "%.1f", "%.0f", "%.1e"}) {
    if (value >= 10 && std::strcmp(format, "%.3f") == 0) continue;
    const int length = std::snprintf(text, sizeof text, format, value);
    if (length <= width) break;
  }
  return text;
}

void print_timing(const Timing& timing) {
  if (!timing.measured) {
    std::printf("  %7s  %6s  %6s  %6s", "N/A", "N/A", "N/A", "N/A");
    return;
  }
  std::printf("  %7s  %6s  %6s", fitting(timing.time_us, 7).c_str(), fitting(timing.algorithm_bandwidth, 6).c_str(),
              fitting(timing.bus_bandwidth, 6).c_str());
  if (timing.checked && timing.rounds()) {
    std::printf("  %6.4f", timing.error);
  } else if (timing.checked) {
    std::printf("  %6g", static_cast<double>(timing.wrong));
  } else {
    std::printf("  %6s", "N/A");
  }
}

void write_timing(Json& json, const char* key, const Timing& timing, bool cpu_time) {
  json.open(key, '{');
  if (timing.measured) {
    json.field(cpu_time ? "cpu_time" : "time", timing.time_us);
    json.field("alg_bw", timing.algorithm_bandwidth);
    json.field("bus_bw", timing.bus_bandwidth);
    if (timing.checked) json.field("nwrong", timing.wrong);
    json.field("min_us", timing.min_us);
    json.field("median_us", timing.median_us);
    json.field("spell_us", timing.spell_us);
    json.field("calls_per_iteration", std::uint64_t{timing.calls});
    json.field("algorithm", timing.algorithm);
    json.field("protocol", timing.protocol);
    json.field("iterations_otherwise", std::uint64_t{timing.iterations_otherwise});
    json.field("compression", timing.compression);
    if (timing.checked && timing.rounds()) {
      json.field("error", timing.error);
      json.field("expected_error", timing.expected_error);
    }
  }
  json.close('}');
}

const char* name_of(Memory memory) {
  if (memory == Memory::cuda) return "cuda";
  return memory == Memory::host ? "host" : "mapped";
}

void write_config(Json& json, const Options& options) {
  json.open("config", '{');
  json.field("nthreads", std::uint64_t{options.threads});
  json.field("ngpus", std::uint64_t{options.memory == Memory::cuda ? options.per_thread : 0});
  json.field("minbytes", options.min_bytes);
  json.field("maxbytes", options.max_bytes);
  json.field("stepbytes", options.step_bytes);
  json.field("stepfactor", std::uint64_t{options.step_factor});
  json.field("iters", std::uint64_t{options.iterations});
  json.field("agg_iters", std::uint64_t{options.aggregated});
  json.field("warmup_iters", std::uint64_t{options.warmups});
  json.field("check", std::uint64_t{options.checks});
  json.field("average", static_cast<std::uint64_t>(options.average));
  json.field("cudagraph", std::uint64_t{options.graph_launches});
  json.field("memory", name_of(options.memory));
  json.field("algorithm", options.algorithm);
  json.field("protocol", options.protocol);
  json.field("transport", options.transport);
  json.field("compression", options.compression);
  json.field("max_relative_error", options.max_relative_error);
  json.field("compression_rounding", options.compression_rounding);
  json.field("channels", std::uint64_t{options.channels});
  json.close('}');
}

}  // namespace

Report::Report(const Collective& collective, const Options& options, std::string launcher)
    : collective_(collective),
      options_(options),
      launcher_(std::move(launcher)),
      shows_progress_(::isatty(STDERR_FILENO) != 0) {}

void Report::begin(const std::vector<RankLocation>& locations) {
  locations_ = locations;
  const bool by_factor = options_.step_factor > 1;
  std::printf("# tutti version %d.%d.%d headers=%d library=%d%s%s\n", TUTTI_VERSION_MAJOR, TUTTI_VERSION_MINOR,
              TUTTI_VERSION_PATCH, TUTTI_VERSION, tutti_version(),
              launcher_.empty() ? "" : " launcher: ", launcher_.c_str());
  std::printf("# Collective test starting: %s\n", program_name());
  std::printf(
      "# nThread %u nGpus %u minBytes %llu maxBytes %llu step: %llu(%s) warmup iters: %u iters: %u agg iters: %u "
      "validation: %u graph: %u unalign: 0\n#\n",
      options_.threads, options_.memory == Memory::cuda ? options_.per_thread : 0,
      static_cast<unsigned long long>(options_.min_bytes), static_cast<unsigned long long>(options_.max_bytes),
      static_cast<unsigned long long>(by_factor ? options_.step_factor : options_.step_bytes),
      by_factor ? "factor" : "bytes", options_.warmups, options_.iterations, options_.aggregated, options_.checks,
      options_.graph_launches);
  std::printf("# Using devices\n");
  for (std::size_t rank = 0; rank < locations_.size(); ++rank) {
    const std::string core = locations_[rank].core < 0 ? "-" : std::to_string(locations_[rank].core);
    std::printf("#  Rank %2zu Group  0 Pid %6d on %10s core %2s %s\n", rank, locations_[rank].pid,
                locations_[rank].host, core.c_str(), locations_[rank].memory);
  }
  print_pinning();
  const char* time = options_.cpu_time ? "cputime" : "time";
  std::printf("#\n# %10s  %12s  %8s  %6s  %6s           out-of-place                       in-place          \n", "",
              "", "", "", "");
  const bool exact =
      options_.max_relative_error == 0 && (options_.compression.empty() || options_.compression == "raw");
  const char* wrong = exact ? "#wrong" : "error";
  std::printf("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s\n", "size", "count", "type", "redop",
              "root", time, "algbw", "busbw", wrong, time, "algbw", "busbw", wrong);
  std::printf("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s\n", "(B)", "(elements)", "", "", "",
              "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "");
  std::fflush(stdout);
  last_progress_s_ = now_s();
}

void Report::progress(std::uint64_t bytes, const char* what) {
  const double now = now_s();
  if (!shows_progress_ || now - last_progress_s_ < 0.5) return;
  last_progress_s_ = now;
  std::fprintf(stderr, "\r\033[K%llu bytes: %s ", static_cast<unsigned long long>(bytes), what);
}

void Report::add(const Row& row) {
  if (shows_progress_) std::fprintf(stderr, "\r\033[K");
  std::printf("%12llu  %12llu  %8s  %6s  %6d", static_cast<unsigned long long>(row.bytes),
              static_cast<unsigned long long>(row.count), row.type, row.operation, row.root);
  print_timing(row.out_of_place);
  print_timing(row.in_place);
  std::printf("\n");
  std::fflush(stdout);
  wrong_ += row.out_of_place.wrong + row.in_place.wrong;
  rows_.push_back(row);
}

// One line for each host with ranks that are not pinned although --no-pin was not given.
void Report::print_pinning() const {
  if (!options_.pin) {
    std::printf("# Ranks are not pinned (--no-pin)\n");
    return;
  }
  std::map<std::string, int> ranks;
  for (const RankLocation& location : locations_) ++ranks[location.host];
  std::set<std::string> printed;
  for (const RankLocation& location : locations_) {
    if (location.core >= 0 || !printed.insert(location.host).second) continue;
    std::printf("# Ranks are not pinned on %s: %d ranks share %d cores\n", location.host, ranks[location.host],
                location.cores);
  }
}

// Printed as comments behind the table, whose columns are those of nccl-tests.
void Report::print_choices() const {
  const std::string out_of_place = spans_of(rows_, &Row::out_of_place);
  const std::string in_place = spans_of(rows_, &Row::in_place);
  if (!out_of_place.empty()) std::printf("# %-20s : %s\n", "Algorithms", out_of_place.c_str());
  if (!in_place.empty() && in_place != out_of_place) std::printf("# %-20s : %s\n", "In place", in_place.c_str());
}

// Rows in whose times some calls ran other algorithms than the one that is named.
void Report::print_autotuning() const {
  std::string text;
  for (const Row& row : rows_) {
    for (const Timing* timing : {&row.out_of_place, &row.in_place}) {
      if (timing->iterations_otherwise == 0) continue;
      text += (text.empty() ? "" : ", ") + std::to_string(timing->iterations_otherwise) + " of " +
              std::to_string(options_.iterations) + " iterations of " + std::to_string(row.bytes) + " B" +
              (timing == &row.in_place ? " in place" : "");
    }
  }
  if (text.empty()) return;
  std::printf("# %-20s : %s ran other algorithms (TUTTI_TUNE); use more iterations (-n)\n", "Autotuning", text.c_str());
}

// Sizes are rounded down to whole elements, as by nccl-tests.
void Report::print_empty_rows() const {
  const auto empty = std::count_if(rows_.begin(), rows_.end(), [](const Row& row) { return row.count == 0; });
  if (empty == 0 || options_.min_bytes == 0) return;
  std::size_t element_bytes = 1;
  for (const Element& element : options_.elements) element_bytes = std::max<std::size_t>(element_bytes, element.size);
  const std::size_t blocks = collective_.divides() ? locations_.size() : 1;
  std::printf("# %-20s : %zu of %zu rows, since sizes are rounded down to whole elements%s; use -b %zu or more\n",
              "No elements in", static_cast<std::size_t>(empty), rows_.size(), blocks > 1 ? " of each rank" : "",
              element_bytes * blocks);
}

bool Report::end() {
  double sum = 0;
  int terms = 0;
  for (const Row& row : rows_) {
    for (const Timing* timing : {&row.out_of_place, &row.in_place}) {
      if (!timing->measured) continue;
      sum += timing->bus_bandwidth;
      ++terms;
    }
  }
  const double average = terms == 0 ? 0 : sum / terms;
  std::printf("# %-20s : %llu %s\n", "Out of bounds values", static_cast<unsigned long long>(wrong_),
              wrong_ == 0 ? "OK" : "FAILED");
  std::printf("# %-20s : %g \n", "Avg bus bandwidth", average);
  print_choices();
  print_autotuning();
  print_empty_rows();
  if (compressed_.calls > 0)
    std::printf("# %-20s : %llu B of elements sent as %llu B, in %llu calls\n", "Compression",
                static_cast<unsigned long long>(compressed_.element_bytes),
                static_cast<unsigned long long>(compressed_.message_bytes),
                static_cast<unsigned long long>(compressed_.calls));
  std::printf("#\n# Collective test concluded: %s\n\n", program_name());
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) fail("standard output: %s", std::strerror(errno));
  if (!options_.json_file.empty()) write_json(average);
  return wrong_ == 0;
}

void check_output(const Options& options) {
  if (options.json_file.empty()) return;
  std::FILE* file = std::fopen(options.json_file.c_str(), "a");  // It keeps what it holds until there are results.
  if (file == nullptr) fail("--output_file %s is not writable: %s", options.json_file.c_str(), std::strerror(errno));
  std::fclose(file);
}

void Report::write_json(double average) const {
  Json json(options_.json_file);
  json.open(nullptr, '{');
  json.field("version", std::uint64_t{4});
  json.field("program", program_name());
  json.field("collective", collective_.title);
  json.field("library_version", static_cast<std::uint64_t>(tutti_version()));
  json.field("launcher", launcher_);
  write_config(json, options_);
  json.open("devices", '[');
  for (std::size_t rank = 0; rank < locations_.size(); ++rank) {
    json.open(nullptr, '{');
    json.field("rank", std::uint64_t{rank});
    json.field("pid", static_cast<std::uint64_t>(locations_[rank].pid));
    json.field("host", locations_[rank].host);
    json.field("core", static_cast<double>(locations_[rank].core));
    json.field("memory", locations_[rank].memory);
    json.close('}');
  }
  json.close(']');
  json.open("results", '[');
  for (const Row& row : rows_) {
    json.open(nullptr, '{');
    json.field("size", row.bytes);
    json.field("count", row.count);
    json.field("type", row.type);
    json.field("redop", row.operation);
    json.field("root", static_cast<double>(row.root));
    write_timing(json, "out_of_place", row.out_of_place, options_.cpu_time);
    write_timing(json, "in_place", row.in_place, options_.cpu_time);
    json.close('}');
  }
  json.close(']');
  json.open("out_of_bounds", '{');
  json.field("count", wrong_);
  json.field("okay", wrong_ == 0 ? "true" : "false");
  json.close('}');
  json.field("average_bus_bandwidth", average);
  if (compressed_.calls > 0) {
    json.open("compressed", '{');
    json.field("calls", compressed_.calls);
    json.field("element_bytes", compressed_.element_bytes);
    json.field("message_bytes", compressed_.message_bytes);
    json.close('}');
  }
  json.close('}');
  if (!json.finish()) fail("--output_file %s: writing failed: %s", options_.json_file.c_str(), std::strerror(errno));
}

}  // namespace perf
