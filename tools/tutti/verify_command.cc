#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"
#include "src/base/clock.h"
#include "src/plan/fuse.h"
#include "src/plan/verify.h"
#include "tools/tutti/commands.h"
#include "tools/tutti/host_shapes.h"
#include "tools/tutti/names.h"
#include "tools/tutti/request.h"

namespace tutti::tool {

namespace {

// The proofs of one algorithm for one number of ranks.
struct Task {
  Collective collective;
  const Algorithm* algorithm;
  Rank ranks;
  Groups groups;
};

struct Tally {
  std::uint64_t problems = 0;
  std::uint64_t plans = 0;     // Proved sets of plans; a set has the plans of all ranks.
  std::uint64_t messages = 0;  // Sum over all proofs, for one chunk.
  std::uint32_t slots = 0;     // Maximum over all proofs.
  std::int64_t time_ns = 0;
  std::vector<std::string> failures{};

  void add(const Tally& other) {
    problems += other.problems;
    plans += other.plans;
    messages += other.messages;
    slots = std::max(slots, other.slots);
    time_ns += other.time_ns;
    failures.insert(failures.end(), other.failures.begin(), other.failures.end());
  }
};

// Returns the layouts to verify: several shapes of hosts if the algorithm works across hosts and the user named no
// layout.
std::vector<Groups> groups_of(const Task& task) {
  if (task.groups.empty() && requires_hosts(*task.algorithm, task.collective)) return host_shapes(task.ranks);
  return {task.groups};
}

// Returns the problems that the algorithm supports: in and out of place, with the first, middle and last root.
std::vector<Problem> problems_of(const Task& task) {
  std::vector<Problem> problems;
  for (const Groups& groups : groups_of(task)) {
    for (const bool in_place : {false, true}) {
      for (const Rank root : {Rank{0}, task.ranks / 2, task.ranks - 1}) {
        const Problem problem{task.collective, task.ranks, root, in_place, groups};
        const bool known = std::find(problems.begin(), problems.end(), problem) != problems.end();
        if (!known && (root == 0 || has_root(task.collective)) && task.algorithm->supports(problem)) {
          problems.push_back(problem);
        }
      }
    }
  }
  return problems;
}

void prove(const std::vector<Plan>& plans, const Loop& loop, const std::string& form, Tally& tally) {
  Result<Proof> proof = verify(plans, loop);
  if (!proof.ok()) {
    tally.failures.push_back(describe(plans.front().problem) + ", " + form + ": " +
                             std::move(proof).status().message());
    return;
  }
  ++tally.plans;
  tally.messages += proof.value().messages;
  tally.slots = std::max(tally.slots, proof.value().slots);
}

// Proves the plans as emitted, fused within stages in a skewed loop, and fused across stages.
Tally verify_problem(const Algorithm& algorithm, const Problem& problem) {
  Tally tally{.problems = 1};
  const std::int64_t begin_ns = now_ns();
  std::vector<Plan> plans = emit_plans(algorithm, problem);
  prove(plans, {}, "as emitted", tally);
  for (Plan& plan : plans) fuse(plan);
  prove(plans, {.chunks = 2, .skew = 1, .slots = 2}, "fused, in a skewed loop", tally);
  fuse_stages(plans);
  prove(plans, {}, "fused across stages", tally);
  tally.time_ns = now_ns() - begin_ns;
  return tally;
}

// Runs all tasks on all cores. Calls `finished` with the tallies in the order of the tasks, as soon as each is
// complete.
template <typename Finished>
void verify_all(const std::vector<Task>& tasks, const Finished& finished) {
  struct Verified {
    Tally tally{};
    std::atomic<bool> done = false;
  };
  std::vector<Verified> verified(tasks.size());
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> workers;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
    workers.emplace_back([&] {
      for (std::size_t mine = next++; mine < tasks.size(); mine = next++) {
        for (const Problem& problem : problems_of(tasks[mine]))
          verified[mine].tally.add(verify_problem(*tasks[mine].algorithm, problem));
        verified[mine].done = true;
        verified[mine].done.notify_one();
      }
    });
  }
  for (Verified& task : verified) {
    task.done.wait(false);
    finished(std::move(task.tally));
  }
}

std::vector<Task> tasks_of(const Request& request) {
  std::vector<Task> tasks;
  for (std::uint32_t i = 0; i < kCollectives; ++i) {
    const auto collective = static_cast<Collective>(i);
    if (request.collective.value_or(collective) != collective) continue;
    for (const Algorithm* algorithm : catalogue(collective)) {
      if (!request.algorithm.empty() && request.algorithm != algorithm->name()) continue;
      for (const Groups& groups : request.layouts) tasks.push_back({collective, algorithm, ranks_in(groups), groups});
      if (!request.layouts.empty()) continue;
      for (const Rank ranks : request.ranks) tasks.push_back({collective, algorithm, ranks, {}});
    }
  }
  return tasks;
}

void print_row(const char* collective, const char* algorithm, const Tally& tally, const char* summary = "") {
  std::printf("%-15s %-22s %9" PRIu64 " %8" PRIu64 " %12" PRIu64 " %6u %8zu %9.2f  %s\n", collective, algorithm,
              tally.problems, tally.plans, tally.messages, tally.slots, tally.failures.size(),
              static_cast<double>(tally.time_ns) * 1e-9, summary);
}

// All tasks of one algorithm.
struct Row {
  const Task& task;
  Tally tally{};
};

void print_row(const Row& row) {
  print_row(name(row.task.collective), row.task.algorithm->name(), row.tally, row.task.algorithm->summary());
}

// Prints each row as soon as it is complete. Prints nothing until a problem was verified.
class Table {
 public:
  explicit Table(const std::vector<Task>& tasks) : tasks_(tasks) {}

  // Adds the next task.
  void add(Tally tally) {
    const Task& task = tasks_[tallies_.size()];
    if (rows_.empty() || rows_.back().task.algorithm != task.algorithm) rows_.push_back({task});
    rows_.back().tally.add(tally);
    total_.add(tally);
    tallies_.push_back(std::move(tally));
    const bool last = tallies_.size() == tasks_.size();
    if (last || tasks_[tallies_.size()].algorithm != task.algorithm) print();
  }

  const std::vector<Tally>& tallies() const { return tallies_; }
  const std::vector<Row>& rows() const { return rows_; }
  const Tally& total() const { return total_; }

 private:
  void print() {
    if (total_.problems == 0) return;
    if (printed_ == 0)
      std::printf("%-15s %-22s %9s %8s %12s %6s %8s %9s\n", "collective", "algorithm", "problems", "proofs", "messages",
                  "slots", "failures", "seconds  description");
    while (printed_ < rows_.size()) print_row(rows_[printed_++]);
    std::fflush(stdout);
  }

  const std::vector<Task>& tasks_;
  std::vector<Tally> tallies_;
  std::vector<Row> rows_;
  Tally total_;
  std::size_t printed_ = 0;
};

// Prints a note if the request takes long. About ten seconds on two cores: the sum over tasks of squared ranks is 1e6.
void print_note_on_time(const std::vector<Task>& tasks) {
  constexpr double kLong = 1e6;
  double squares = 0;
  for (const Task& task : tasks) squares += static_cast<double>(task.ranks) * task.ranks;
  if (squares < kLong) return;
  std::fprintf(stderr, "tutti: verifying %zu combinations of an algorithm and its ranks; this may take minutes\n",
               tasks.size());
}

// Prints which layouts were used, and which algorithms support none of the problems.
void print_remarks(const Request& request, const std::vector<Row>& rows) {
  bool over_hosts = false;
  std::string unproved;
  for (const auto& [task, tally] : rows) {
    over_hosts = over_hosts || requires_hosts(*task.algorithm, task.collective);
    if (tally.problems > 0) continue;
    unproved.append(unproved.empty() ? "" : ", ").append(name(task.collective)).append(" ");
    unproved.append(task.algorithm->name());
  }
  if (over_hosts && request.layouts.empty())
    std::printf("layouts of algorithms that work across hosts: %s (--groups chooses others)\n", kHostShapes);
  if (!unproved.empty()) std::printf("not proved, no problem supported: %s\n", unproved.c_str());
}

// Prints layouts that an algorithm does not support although it supports others of the list.
void print_skipped(const std::vector<Task>& tasks, const std::vector<Tally>& tallies, const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const Task& task = tasks[i];
      if (task.algorithm != row.task.algorithm || task.groups.empty()) continue;
      if (tallies[i].problems > 0 || row.tally.problems == 0) continue;
      const Problem problem = {task.collective, task.ranks, 0, false, task.groups};
      std::printf("not proved, layout not supported: %s for %s\n", task.algorithm->name(), describe(problem).c_str());
    }
  }
}

Status nothing_proved(const Task& first) {
  const Problem problem{first.collective, first.ranks, 0, false, first.groups};
  const bool over_hosts = requires_hosts(*first.algorithm, first.collective);
  return unsupported(
      "no plan was verified: " + std::string(first.algorithm->name()) + " does not support " + describe(problem) +
      (over_hosts ? "; it works across hosts: give more --ranks, or --groups of two hosts or more, such as "
                    "3+5 or 2x4 (all_to_all, host_one_shot and host_doubling need hosts of equal size)"
                  : "; give other --ranks or --groups, or another --algorithm"));
}

}  // namespace

Status verify_command(int argc, char** argv) {
  const Request request = TUTTI_TRY(parse_request(describe_verify(), argc, argv));
  const std::vector<Task> tasks = tasks_of(request);
  if (tasks.empty()) return no_such_algorithm(request.algorithm, request.collective);
  const std::int64_t begin_ns = now_ns();
  print_note_on_time(tasks);
  Table table(tasks);
  verify_all(tasks, [&](Tally tally) { table.add(std::move(tally)); });
  const Tally& total = table.total();
  if (total.problems == 0) return nothing_proved(tasks.front());

  print_row("all", "", total);
  print_remarks(request, table.rows());
  print_skipped(tasks, table.tallies(), table.rows());
  std::printf("%" PRIu64 " proofs, %zu failures, in %.1f s\n", total.plans, total.failures.size(),
              static_cast<double>(now_ns() - begin_ns) * 1e-9);
  if (total.failures.empty()) return {};
  return internal_error("not proved: " + total.failures.front());
}

}  // namespace tutti::tool
