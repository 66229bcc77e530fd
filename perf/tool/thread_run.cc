#include "perf/tool/thread_run.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <utility>

#include "perf/tool/fail.h"
#include "perf/tool/launcher.h"
#include "perf/tool/noise.h"
#include "perf/tool/ranks.h"
#include "perf/tool/report.h"

namespace perf {
namespace {

double seconds(clockid_t clock) {
  timespec time = {};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Timing that a thread sends to the others. The mark shows rank 0 that the exchange itself worked.
struct Sample {
  std::uint64_t mark = 0;
  std::uint64_t wrong = 0;
  double mean_us = 0, min_us = 0, median_us = 0, spell_us = 0;
  Squares squares;
};
constexpr std::uint64_t kMark = 0x7475747469000000;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Iterations per sample of spell_us. An incomplete last sample is dropped, unless it is the only one.
constexpr std::size_t kSpell = 16;

std::vector<double> spells_of(const std::vector<double>& iterations) {
  const std::size_t each = std::min(kSpell, iterations.size());
  std::vector<double> spells;
  for (std::size_t end = each; end <= iterations.size(); end += each) {
    double sum = 0;
    for (std::size_t i = end - each; i < end; ++i) sum += iterations[i];
    spells.push_back(sum / static_cast<double>(each));
  }
  return spells;
}

class ThreadRun {
 public:
  ThreadRun(const Collective& collective, const Options& options, tutti_comm threads)
      : collective_(collective), options_(options), threads_(threads) {
    require(tutti_comm_rank(threads, &thread_), "tutti_comm_rank");
    require(tutti_comm_ranks(threads, &thread_count_), "tutti_comm_ranks");
    rank_count_ = thread_count_ * static_cast<int>(options.memory == Memory::cuda ? options.per_thread : 1);
    if (options.root >= rank_count_)
      fail("--root %d is out of range for %d ranks; pass 0 to %d, or all", options.root, rank_count_, rank_count_ - 1);
    if (thread_ == 0 && options.root != 0 && !collective.has_root)
      std::fprintf(stderr, "%s: ignoring --root, which does not apply to %s\n", program_name(), collective.name);
    ranks_ = make_ranks(collective, options, threads);
    const std::size_t bytes = std::max<std::size_t>(options.max_bytes, 8 * static_cast<std::size_t>(rank_count_));
    allocate(ranks_, options, bytes);
  }

  bool run(const Pinned& pinned) {
    if (thread_ == 0) {
      const char* launcher = "";
      require(tutti_comm_launcher(threads_, &launcher), "tutti_comm_launcher");
      report_ = std::make_unique<Report>(collective_, options_, launcher);
      check_output(options_);
    }
    announce(pinned);
    std::uint64_t bytes = options_.min_bytes;
    for (measure_size(bytes); next_size(bytes);) measure_size(bytes);
    print_compression();
    end_ranks(ranks_, threads_);
    return report_ == nullptr || report_->end();
  }

 private:
  template <typename T>
  std::vector<T> gather(const T& mine) {
    std::vector<T> all(static_cast<std::size_t>(thread_count_));
    require(tutti_all_gather(&mine, all.data(), sizeof mine, tutti_uint8, threads_, nullptr),
            "gathering the ranks' reports");
    return all;
  }

  void barrier() {
    const std::int32_t here = 1;
    std::int32_t all = 0;
    require(tutti_all_reduce(&here, &all, 1, tutti_int32, tutti_sum, threads_, nullptr), "barrier");
    if (all != thread_count_) fail("thread %d: a barrier counted %d of %d threads", thread_, all, thread_count_);
  }

  void announce(const Pinned& pinned) {
    std::vector<RankLocation> locations(static_cast<std::size_t>(rank_count_));
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      RankLocation location;
      location.pid = static_cast<int>(::getpid());
      location.core = pinned.core;
      location.cores = pinned.cores;
      ::gethostname(location.host, sizeof location.host - 1);
      std::snprintf(location.memory, sizeof location.memory, "%s", ranks_[i]->backend().description().c_str());
      const std::vector<RankLocation> of_threads = gather(location);
      for (std::size_t thread = 0; thread < of_threads.size(); ++thread)
        locations[thread * ranks_.size() + i] = of_threads[thread];
    }
    if (report_ != nullptr) report_->begin(locations);
  }

  // Sets `bytes` to the next size. Returns false if there is none.
  bool next_size(std::uint64_t& bytes) const {
    const std::uint64_t max = options_.max_bytes;
    const bool fits =
        options_.step_factor > 1 ? bytes <= max / options_.step_factor : options_.step_bytes <= max - bytes;
    const std::uint64_t last = bytes;
    if (fits) bytes = options_.step_factor > 1 ? bytes * options_.step_factor : bytes + options_.step_bytes;
    return bytes > last;
  }

  void measure_size(std::uint64_t bytes) {
    static const std::vector<Operation> none = {{"none", tutti_sum, false}};
    const int first_root = std::max(options_.root, 0);
    const int last_root = collective_.has_root && options_.root < 0 ? rank_count_ - 1 : first_root;
    for (const Element& element : options_.elements) {
      for (const Operation& operation : collective_.reduces() ? options_.operations : none) {
        if (!supports(element, operation, options_.memory == Memory::cuda)) continue;
        for (int root = first_root; root <= last_root; ++root) measure_row(bytes, element, operation, root);
      }
    }
  }

  // Blocks are multiples of 16 bytes where they can be.
  std::size_t count_of(std::uint64_t bytes, const Element& element) const {
    const std::size_t elements = bytes / element.size;
    if (!collective_.divides()) return elements;
    const std::size_t block = elements / static_cast<std::size_t>(rank_count_);
    const std::size_t aligned = block & ~(std::size_t{16} / element.size - 1);
    return aligned == 0 ? block : aligned;
  }

  void measure_row(std::uint64_t bytes, const Element& element, const Operation& operation, int root) {
    Row row;
    row.count = count_of(bytes, element);
    row.bytes = row.count * element.size * static_cast<std::size_t>(collective_.divides() ? rank_count_ : 1);
    row.type = element.name;
    row.operation = operation.name;
    row.root = collective_.has_root ? root : -1;
    Case one = {element, operation, root, row.count, false};
    row.out_of_place = measure(one, row.bytes);
    one.in_place = true;
    if (collective_.in_place) row.in_place = measure(one, row.bytes);
    if (report_ != nullptr) report_->add(row);
  }

  Timing measure(const Case& one, std::uint64_t bytes) {
    if (report_ != nullptr) report_->progress(bytes, one.in_place ? "timing, in place" : "timing, out of place");
    calls_ = group_of(ranks_, one, options_.aggregated);
    Timing timing;
    timing.measured = true;
    timing.calls = calls_per_iteration();
    Sample sample = options_.graph_launches == 0 ? time(timing.calls) : time_replays(timing.calls);
    if (report_ != nullptr) report_->progress(bytes, one.in_place ? "checking, in place" : "checking, out of place");
    record_choice(timing);
    for (std::uint32_t i = 0; i < options_.checks; ++i) timing.rounds() ? compare(one, sample) : check(one, sample);
    timing.checked = options_.checks > 0;
    for (std::size_t i = 0; i < ranks_.size(); ++i) ranks_[i]->done_with(one, calls_[i]);
    sample.mark = kMark + static_cast<std::uint64_t>(thread_);
    const std::vector<Sample> samples = gather(sample);
    combine(samples, timing);
    if (timing.rounds() && timing.checked) judge(one, samples, timing);
    if (timing.time_us > 0) timing.algorithm_bandwidth = static_cast<double>(bytes) / timing.time_us / 1e3;
    timing.bus_bandwidth = timing.algorithm_bandwidth * collective_.bus_factor(rank_count_);
    return timing;
  }

  using Choice = std::pair<std::string_view, std::string_view>;  // Algorithm and protocol.

  Choice last_choice() const {
    const char *algorithm = "", *protocol = "";
    require(tutti_comm_last_choice(ranks_.front()->comm(), &algorithm, &protocol), "tutti_comm_last_choice");
    return {algorithm, protocol};
  }

  // True if autotuning may alternate candidates. In a stream, candidates are known when the calls are done.
  bool tries() const {
    const std::string tune = value_of("TUTTI_TUNE");
    return !tune.empty() && tune != "0" && collective_.call != nullptr && options_.memory != Memory::cuda;
  }

  // Must run before the next barrier, which changes the last choice of the communicator.
  void record_choice(Timing& timing) {
    if (collective_.call == nullptr) return;
    const Choice last = last_choice();
    timing.algorithm = last.first;
    timing.protocol = last.second;
    timing.iterations_otherwise = static_cast<std::uint32_t>(ran_.size()) -
                                  static_cast<std::uint32_t>(std::count(ran_.begin(), ran_.end(), last));
    const char* compression = "";
    require(tutti_comm_last_compression(ranks_.front()->comm(), &compression, &timing.expected_error),
            "tutti_comm_last_compression");
    timing.compression = compression;
  }

  void print_compression() {
    tutti_compression_statistics mine = TUTTI_COMPRESSION_STATISTICS_DEFAULT;
    for (const auto& rank : ranks_) {
      tutti_compression_statistics one = TUTTI_COMPRESSION_STATISTICS_DEFAULT;
      require(tutti_comm_compression_statistics(rank->comm(), &one), "tutti_comm_compression_statistics");
      mine.compressed_calls += one.compressed_calls;
      mine.element_bytes += one.element_bytes;
      mine.message_bytes += one.message_bytes;
    }
    CompressedCalls all;
    for (const tutti_compression_statistics& one : gather(mine)) {
      all.calls = std::max(all.calls, one.compressed_calls / ranks_.size());
      all.element_bytes += one.element_bytes;
      all.message_bytes += one.message_bytes;
    }
    if (report_ != nullptr) report_->compressed(all);
  }

  // A call of every rank of the thread, `times` each.
  void enqueue(std::uint32_t times) {
    if (times == 1 && ranks_.size() == 1) return ranks_.front()->run(calls_.front());
    require(tutti_group_start(), "tutti_group_start");
    for (std::uint32_t n = 0; n < times; ++n) {
      for (std::size_t i = 0; i < ranks_.size(); ++i) ranks_[i]->run(calls_[n * ranks_.size() + i]);
    }
    require(tutti_group_end(), collective_.name);
  }

  void synchronize() {
    for (const auto& rank : ranks_) rank->synchronize();
  }

  // One call may be shorter than reading the clock twice: enough calls for 20 us, the same on every rank.
  std::uint32_t calls_per_iteration() {
    enqueue(1);
    synchronize();
    barrier();
    const double start = seconds(CLOCK_MONOTONIC);
    const std::uint32_t probes = std::max(options_.warmups, 1U);
    for (std::uint32_t i = 0; i < probes; ++i) enqueue(1);
    synchronize();
    const double mine = (seconds(CLOCK_MONOTONIC) - start) / probes;
    double slowest = 0;
    for (const double each : gather(mine)) slowest = std::max(slowest, each);
    return static_cast<std::uint32_t>(std::clamp(20e-6 / std::max(slowest, 1e-9), 1.0, 1000.0));
  }

  clockid_t clock() const { return options_.cpu_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC; }

  // Calls that block are timed one iteration at a time. In a stream, all at once: waiting between them would count.
  Sample time(std::uint32_t calls) {
    std::vector<double> iterations(options_.iterations);
    double asking = 0;
    ran_.clear();
    if (tries_) ran_.reserve(iterations.size());
    barrier();
    const double start = seconds(clock());
    double begin = start;
    for (double& iteration : iterations) {
      for (std::uint32_t i = 0; i < calls; ++i) enqueue(options_.aggregated);
      const double end = seconds(clock());
      iteration = end - begin;
      begin = end;
      if (!tries_) continue;
      ran_.push_back(last_choice());
      begin = seconds(clock());
      asking += begin - end;
    }
    synchronize();
    const double mean = (seconds(clock()) - start - asking) / options_.iterations;
    if (options_.memory == Memory::cuda) std::fill(iterations.begin(), iterations.end(), mean);
    const double per_call_us = 1e6 / calls / options_.aggregated;
    Sample sample;
    sample.mean_us = mean * per_call_us;
    sample.spell_us = median(spells_of(iterations)) * per_call_us;
    sample.median_us = median(iterations) * per_call_us;
    sample.min_us = *std::min_element(iterations.begin(), iterations.end()) * per_call_us;
    return sample;
  }

  std::unique_ptr<Replay> captured(std::uint32_t iterations, std::uint32_t calls) {
    std::vector<MemoryBackend*> backends;
    for (const auto& rank : ranks_) backends.push_back(&rank->backend());
    return capture(backends, [&] {
      for (std::uint32_t i = 0; i < iterations * calls; ++i) enqueue(options_.aggregated);
    });
  }

  // A graph of all iterations: replayed once to bring it to the device, then as often as -G selects.
  Sample time_replays(std::uint32_t calls) {
    const auto graph = captured(options_.iterations, calls);
    graph->launch();
    synchronize();
    barrier();
    const double start = seconds(clock());
    for (std::uint32_t i = 0; i < options_.graph_launches; ++i) graph->launch();
    synchronize();
    const double in_all = static_cast<double>(options_.graph_launches) * options_.iterations * calls;
    Sample sample;
    sample.mean_us = (seconds(clock()) - start) * 1e6 / in_all / options_.aggregated;
    sample.spell_us = sample.median_us = sample.min_us = sample.mean_us;
    return sample;
  }

  // Compressed calls use Gaussian data, whose expected error is known.
  void compare(const Case& one, Sample& sample) {
    const Pattern pattern(one.element, one.operation, rank_count_, ++salt_);
    const Noise noise(one.element, one.operation, rank_count_, salt_);
    for (std::size_t i = 0; i < ranks_.size(); ++i) ranks_[i]->fill(one, calls_[i], noise);
    enqueue(1);
    synchronize();
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const Squares more = ranks_[i]->squares(one, calls_[i], pattern, noise);
      sample.squares.errors += more.errors;
      sample.squares.results += more.results;
      sample.squares.digest = more.digest;
    }
  }

  // All ranks of an all-reduce must have the same bits, also after compression.
  bool alike(const std::vector<Sample>& samples) const {
    const bool same = collective_.reduces() && collective_.send == Blocks::one && collective_.recv == Blocks::one &&
                      !collective_.has_root;
    return !same || std::all_of(samples.begin(), samples.end(), [&](const Sample& sample) {
      return sample.squares.digest == samples.front().squares.digest;
    });
  }

  // Reports one relative error for all elements. NaN counts as wrong.
  void judge(const Case& one, const std::vector<Sample>& samples, Timing& timing) {
    const Noise noise(one.element, one.operation, rank_count_, salt_);
    const Squares& sums = timing.squares;
    timing.error = sums.results > 0 ? std::sqrt(sums.errors / sums.results) : 0;
    timing.wrong = timing.error <= noise.max_error(timing.expected_error, one.count) && alike(samples) ? 0 : 1;
  }

  void check(const Case& one, Sample& sample) {
    const Pattern pattern(one.element, one.operation, rank_count_, ++salt_);
    const auto graph = options_.graph_launches == 0 ? nullptr : captured(1, 1);
    for (std::size_t i = 0; i < ranks_.size(); ++i) ranks_[i]->fill(one, calls_[i], pattern);
    graph == nullptr ? enqueue(1) : graph->launch();
    synchronize();
    for (std::size_t i = 0; i < ranks_.size(); ++i) sample.wrong += ranks_[i]->wrong(one, calls_[i], pattern);
  }

  void combine(const std::vector<Sample>& samples, Timing& timing) {
    std::vector<double> means;
    for (std::size_t thread = 0; thread < samples.size(); ++thread) {
      if (samples[thread].mark != kMark + thread)
        fail("thread %d: the report of thread %zu is damaged", thread_, thread);
      means.push_back(samples[thread].mean_us);
      timing.wrong += samples[thread].wrong;
      timing.squares.errors += samples[thread].squares.errors;
      timing.squares.results += samples[thread].squares.results;
      timing.min_us = std::max(timing.min_us, samples[thread].min_us);
      timing.median_us = std::max(timing.median_us, samples[thread].median_us);
      timing.spell_us = std::max(timing.spell_us, samples[thread].spell_us);
    }
    double sum = 0;
    for (const double mean : means) sum += mean;
    switch (options_.average) {
      case Average::first_rank: timing.time_us = means.front(); break;
      case Average::mean: timing.time_us = sum / static_cast<double>(means.size()); break;
      case Average::fastest: timing.time_us = *std::min_element(means.begin(), means.end()); break;
      case Average::slowest: timing.time_us = *std::max_element(means.begin(), means.end()); break;
    }
  }

  const Collective& collective_;
  const Options& options_;
  tutti_comm threads_;  // For barriers and reports: on host memory, and chosen freely.
  int thread_ = 0, thread_count_ = 1, rank_count_ = 1;
  bool tries_ = tries();
  std::vector<Choice> ran_;  // By timed iteration, if there is more than one candidate.
  std::uint32_t salt_ = 0;
  Ranks ranks_;
  std::vector<Call> calls_;         // Calls of the current case, see group_of().
  std::unique_ptr<Report> report_;  // Report in the thread of rank 0.
};

}  // namespace

bool run_thread(const Collective& collective, const Options& options, tutti_comm threads, const Pinned& pinned) {
  return ThreadRun(collective, options, threads).run(pinned);
}

}  // namespace perf
