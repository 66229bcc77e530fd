#include "perf/tool/rank.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "perf/tool/buffer.h"
#include "perf/tool/fail.h"
#include "perf/tool/pattern.h"

namespace perf {
namespace {

double seconds(clockid_t clock) {
  timespec time = {};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// What a rank tells the others about a timing. The mark shows rank 0 that the telling itself worked.
struct Sample {
  std::uint64_t mark = 0;
  std::uint64_t wrong = 0;
  double mean_us = 0, min_us = 0, median_us = 0;
};
constexpr std::uint64_t kMark = 0x7475747469000000;

struct Case {
  const Element& element;
  const Operation& operation;
  int root;
  std::size_t count;  // Elements per block.
  bool in_place;
};

class RankRun {
 public:
  RankRun(const Collective& collective, const Options& options, tutti_comm comm)
      : collective_(collective), options_(options), comm_(comm) {
    require(tutti_comm_rank(comm, &at_.rank), "tutti_comm_rank");
    require(tutti_comm_ranks(comm, &at_.ranks), "tutti_comm_ranks");
    if (options.root >= at_.ranks)
      fail("--root %d: there are %d ranks; give 0 to %d, or all", options.root, at_.ranks, at_.ranks - 1);
    tutti_comm_options forced = TUTTI_COMM_OPTIONS_DEFAULT;
    const auto unless_empty = [](const std::string& name) { return name.empty() ? nullptr : name.c_str(); };
    forced.algorithm = unless_empty(options.algorithm);
    forced.protocol = unless_empty(options.protocol);
    forced.transport = unless_empty(options.transport);
    forced.wire = unless_empty(options.wire);
    forced.channels = options.channels;
    require(tutti_comm_with_options(comm, &forced, &forced_), "forcing the choice");
    const std::size_t bytes = std::max<std::size_t>(options.max_bytes, 8 * static_cast<std::size_t>(at_.ranks));
    send_ = std::make_unique<Buffer>(options.memory, bytes);
    recv_ = std::make_unique<Buffer>(options.memory, bytes);
  }

  bool run(int core) {
    if (at_.rank == 0) {
      const char* launcher = "";
      require(tutti_comm_launcher(comm_, &launcher), "tutti_comm_launcher");
      report_ = std::make_unique<Report>(collective_, options_, launcher);
      report_->check_output();
    }
    announce(core);
    std::uint64_t bytes = options_.min_bytes;
    while (bytes <= options_.max_bytes) {
      measure_size(bytes);
      bytes = options_.step_factor > 1 ? bytes * options_.step_factor : bytes + options_.step_bytes;
    }
    send_.reset();
    recv_.reset();
    require(tutti_comm_destroy(comm_), "tutti_comm_destroy");
    return report_ == nullptr || report_->end();
  }

 private:
  template <typename T>
  std::vector<T> gather(const T& mine) {
    std::vector<T> all(static_cast<std::size_t>(at_.ranks));
    require(tutti_all_gather(&mine, all.data(), sizeof mine, tutti_uint8, comm_, nullptr),
            "gathering the ranks' reports");
    return all;
  }

  void barrier() {
    const std::int32_t here = 1;
    std::int32_t all = 0;
    require(tutti_all_reduce(&here, &all, 1, tutti_int32, tutti_sum, comm_, nullptr), "barrier");
    if (all != at_.ranks) fail("rank %d: a barrier counted %d of %d ranks", at_.rank, all, at_.ranks);
  }

  void announce(int core) {
    Place place;
    place.pid = static_cast<int>(::getpid());
    place.core = core;
    ::gethostname(place.host, sizeof place.host - 1);
    const std::vector<Place> places = gather(place);
    if (report_ != nullptr) report_->begin(places);
  }

  void measure_size(std::uint64_t bytes) {
    static const std::vector<Operation> none = {{"none", tutti_sum, false}};
    const int first_root = std::max(options_.root, 0);
    const int last_root = collective_.has_root && options_.root < 0 ? at_.ranks - 1 : first_root;
    for (const Element& element : options_.elements) {
      for (const Operation& operation : collective_.reduces() ? options_.operations : none) {
        for (int root = first_root; root <= last_root; ++root) measure_row(bytes, element, operation, root);
      }
    }
  }

  // Blocks are multiples of 16 bytes where they can be.
  std::size_t count_of(std::uint64_t bytes, const Element& element) const {
    const std::size_t elements = bytes / element.size;
    if (!collective_.divides()) return elements;
    const std::size_t block = elements / static_cast<std::size_t>(at_.ranks);
    const std::size_t aligned = block & ~(std::size_t{16} / element.size - 1);
    return aligned == 0 ? block : aligned;
  }

  void measure_row(std::uint64_t bytes, const Element& element, const Operation& operation, int root) {
    at_.root = root;
    Row row;
    row.count = count_of(bytes, element);
    const std::size_t blocks = collective_.divides() ? static_cast<std::size_t>(at_.ranks) : 1;
    row.bytes = row.count * blocks * element.size;
    row.type = element.name;
    row.operation = operation.name;
    row.root = collective_.has_root ? root : -1;
    Case one = {element, operation, root, row.count, false};
    row.out_of_place = measure(one, row.bytes);
    one.in_place = true;
    if (collective_.in_place) row.in_place = measure(one, row.bytes);
    if (report_ != nullptr) report_->add(row);
  }

  Call call_of(const Case& one) {
    Call call;
    const std::size_t block_bytes = one.count * one.element.size;
    Buffer& source = one.in_place ? *recv_ : *send_;
    call.send = source.at(one.in_place ? collective_.send_offset(at_) * block_bytes : 0);
    call.recv = recv_->at(one.in_place ? collective_.recv_offset(at_) * block_bytes : 0);
    call.count = one.count;
    call.type = one.element.type;
    call.reduction = one.operation.reduction;
    call.root = one.root;
    call.comm = forced_;
    if (one.operation.is_mulsum) {
      const std::uint64_t scalar = bits_of(one.element, Pattern::scalar(at_.rank));
      require(tutti_reduction_create_pre_mul_sum(&scalar, call.type, comm_, &call.reduction), "creating the reduction");
    }
    return call;
  }

  void run_once(const Call& call) { require(collective_.run(call, at_), collective_.name); }

  Timing measure(const Case& one, std::uint64_t bytes) {
    if (report_ != nullptr) report_->progress(bytes, one.in_place ? "timing, in place" : "timing, out of place");
    const Call call = call_of(one);
    Timing timing;
    timing.measured = true;
    timing.calls = calls_per_iteration(call);
    Sample sample = time(call, timing.calls);
    if (report_ != nullptr) report_->progress(bytes, one.in_place ? "checking, in place" : "checking, out of place");
    for (std::uint32_t i = 0; i < options_.checks; ++i) sample.wrong += check(one, call);
    timing.checked = options_.checks > 0;
    if (one.operation.is_mulsum) require(tutti_reduction_destroy(call.reduction, comm_), "destroying the reduction");
    sample.mark = kMark + static_cast<std::uint64_t>(at_.rank);
    combine(gather(sample), timing);
    if (timing.time_us > 0) timing.algorithm_bandwidth = static_cast<double>(bytes) / timing.time_us / 1e3;
    timing.bus_bandwidth = timing.algorithm_bandwidth * collective_.bus_factor(at_.ranks);
    return timing;
  }

  // One call may be shorter than reading the clock twice: enough calls for 20 us, the same on every rank.
  std::uint32_t calls_per_iteration(const Call& call) {
    run_once(call);
    barrier();
    const double start = seconds(CLOCK_MONOTONIC);
    const std::uint32_t probes = std::max(options_.warmups, 1U);
    for (std::uint32_t i = 0; i < probes; ++i) run_once(call);
    const double mine = (seconds(CLOCK_MONOTONIC) - start) / probes;
    double slowest = 0;
    for (const double each : gather(mine)) slowest = std::max(slowest, each);
    return static_cast<std::uint32_t>(std::clamp(20e-6 / std::max(slowest, 1e-9), 1.0, 1000.0));
  }

  Sample time(const Call& call, std::uint32_t calls) {
    const clockid_t clock = options_.cpu_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
    std::vector<double> iterations(options_.iterations);
    barrier();
    const double start = seconds(clock);
    double begin = start;
    for (double& iteration : iterations) {
      for (std::uint32_t i = 0; i < calls; ++i) run_aggregate(call);
      const double end = seconds(clock);
      iteration = end - begin;
      begin = end;
    }
    const double per_call_us = 1e6 / calls / options_.aggregated;
    const auto middle = iterations.begin() + static_cast<std::ptrdiff_t>(iterations.size() / 2);
    std::nth_element(iterations.begin(), middle, iterations.end());
    Sample sample;
    sample.mean_us = (begin - start) / options_.iterations * per_call_us;
    sample.median_us = *middle * per_call_us;
    sample.min_us = *std::min_element(iterations.begin(), iterations.end()) * per_call_us;
    return sample;
  }

  void run_aggregate(const Call& call) {
    if (options_.aggregated == 1) return run_once(call);
    require(tutti_group_start(), "tutti_group_start");
    for (std::uint32_t i = 0; i < options_.aggregated; ++i) run_once(call);
    require(tutti_group_end(), collective_.name);
  }

  std::uint64_t check(const Case& one, const Call& call) {
    const Pattern pattern(one.element, one.operation, at_.ranks, ++salt_);
    const std::size_t block_bytes = one.count * one.element.size;
    std::memset(recv_->at(0), kPoison, block_bytes * std::max<std::size_t>(1, collective_.recv_blocks(at_)));
    const std::size_t sent = collective_.send_blocks(at_) * one.count;
    pattern.fill(const_cast<void*>(call.send), at_.rank, 0, sent);
    run_once(call);
    return pattern.wrong(call.recv, collective_, at_, one.count);
  }

  void combine(const std::vector<Sample>& samples, Timing& timing) {
    std::vector<double> means;
    for (std::size_t rank = 0; rank < samples.size(); ++rank) {
      if (samples[rank].mark != kMark + rank) fail("rank %d: the report of rank %zu arrived damaged", at_.rank, rank);
      means.push_back(samples[rank].mean_us);
      timing.wrong += samples[rank].wrong;
      timing.min_us = std::max(timing.min_us, samples[rank].min_us);
      timing.median_us = std::max(timing.median_us, samples[rank].median_us);
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
  tutti_comm comm_;              // For barriers and reports: chosen freely.
  tutti_comm forced_ = nullptr;  // What is measured.
  Position at_;
  std::uint32_t salt_ = 0;
  std::unique_ptr<Buffer> send_, recv_;
  std::unique_ptr<Report> report_;  // Rank 0's.
};

}  // namespace

bool run_rank(const Collective& collective, const Options& options, tutti_comm comm, int core) {
  return RankRun(collective, options, comm).run(core);
}

int pin(int index) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return -1;
  int skip = index % CPU_COUNT(&allowed);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || skip-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    return ::sched_setaffinity(0, sizeof one, &one) == 0 ? core : -1;
  }
  return -1;
}

}  // namespace perf
