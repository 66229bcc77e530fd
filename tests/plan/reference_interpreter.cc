#include "tests/plan/reference_interpreter.h"

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "tests/plan/callers.h"

namespace tutti::test {
namespace {

struct Message {
  std::uint32_t length;  // Elements of the whole message, of which this is one slice.
  std::vector<Value> values;
};

using Compression = std::tuple<Rank, Rank, std::uint16_t>;  // Writer, reader, tag.

constexpr std::uint32_t kUnknown = ~0u;
constexpr std::uint32_t kOperations = 2;

// One slice of one step of one chunk.
struct Action {
  std::uint32_t chunk, round, slice, step;
};

// Progress of a rank.
struct Process {
  explicit Process(Rank self) : rank(self) {}

  Rank rank;
  std::vector<Action> actions;  // Actions of one operation.
  std::size_t next = 0;
  std::size_t phase = 0;  // Operand of the action.
  std::uint32_t operation = 0;
  bool inside = false;  // Whether the rank is within the operation.
  bool slow = false;
  bool blocked = false, finished = false;
  std::uint32_t length = kUnknown;  // Length of the current step, in elements.
  std::vector<Value> accumulator;
};

class ReferenceInterpreter {
 public:
  ReferenceInterpreter(std::span<const Plan> plans, const Loop& loop, std::uint64_t seed)
      : plans_(plans), loop_(loop), random_(seed), callers_(plans, loop, random_()) {
    for (Rank rank = 0; rank < plans_.size(); ++rank) {
      Process& process = processes_.emplace_back(rank);
      process.slow = random_() % 3 == 0;
      add_iterations(process, static_cast<std::uint32_t>(plans_[rank].shape.stages.size()));
    }
    slot_elements_ = (longest_message() + loop.longest - 1) / loop.longest;
  }

  ReferenceResult run() {
    bool can_go_on = true;
    while (text_.empty() && can_go_on) can_go_on = advance_somebody();
    if (text_.empty()) judge_the_end();
    return {text_.empty(), text_};
  }

 private:
  // The loop ---------------------------------------------------------------------------------------------------------

  void add_iterations(Process& process, std::uint32_t stages) {
    const bool latest_first = loop_.order == StageOrder::latest_first && loop_.skew > 0;
    for (std::uint32_t iteration = 0; iteration < loop_.chunks + loop_.skew * (stages - 1); ++iteration) {
      for (std::uint32_t i = 0; i < stages; ++i) {
        const std::uint32_t stage = latest_first ? stages - 1 - i : i;
        const std::uint32_t chunk = iteration - loop_.skew * stage;  // Wraps around if there is none yet.
        if (chunk < loop_.chunks) add_stage(process, chunk, stage);
      }
    }
  }

  void add_stage(Process& process, std::uint32_t chunk, std::uint32_t stage) {
    const Plan& plan = plans_[process.rank];
    const bool last = stage + 1 == plan.shape.stages.size();
    const std::uint32_t end = last ? plan.shape.rounds : plan.shape.stages[stage + 1];
    for (std::uint32_t round = plan.shape.stages[stage]; round < end; ++round) {
      for (std::uint32_t slice = 0; slice < loop_.longest; ++slice) {
        for (std::uint32_t step = plan.rounds[round]; step < plan.rounds[round + 1]; ++step) {
          process.actions.push_back({chunk, round, slice, step});
        }
      }
    }
  }

  std::uint32_t longest_message() const {
    std::uint32_t longest = 1;
    for (const Plan& plan : plans_) {
      for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        for_each_operand(plan.steps[i], [&](const Operand& operand) {
          if (operand.is_memory()) longest = std::max(longest, callers_.length_of(operand));
        });
      }
    }
    return longest;
  }

  // The schedule -----------------------------------------------------------------------------------------------------

  // False when no rank can continue.
  bool advance_somebody() {
    ready_.clear();
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      if (!processes_[i].blocked && !processes_[i].finished) ready_.push_back(i);
    }
    if (ready_.empty()) return false;
    Process& process = processes_[ready_[random_() % ready_.size()]];
    if (process.slow && random_() % 8 != 0) return true;
    for (std::uint64_t burst = 1ull << random_() % 6; burst > 0 && text_.empty() && !process.finished; --burst) {
      process.blocked = !advance(process);
      if (process.blocked) break;
    }
    return true;
  }

  void wake(Rank rank) { processes_[rank].blocked = false; }

  // Runs one operand of one step, or an entry or return. Returns false if the rank must wait.
  bool advance(Process& process) {
    if (!process.inside) violation(process.rank, callers_.enter(process.rank));
    process.inside = true;
    if (process.next == process.actions.size()) return finish_operation(process);
    return advance_step(process, process.actions[process.next]);
  }

  bool finish_operation(Process& process) {
    violation(process.rank, callers_.leave(process.rank));
    process.next = 0;
    process.inside = false;
    process.finished = ++process.operation == kOperations;
    return true;
  }

  // The steps --------------------------------------------------------------------------------------------------------

  // Phases of a slice: flags among the sources, the other sources, the other targets, flags among the targets.
  bool advance_step(Process& process, const Action& action) {
    const Step step = plans_[process.rank].steps[action.step];
    const std::size_t n = step.sources.size(), m = step.targets.size();
    const std::size_t phase = process.phase;
    bool done = true;
    if (phase < n) {
      done = action.slice > 0 || await(process, step.sources[phase]);
    } else if (phase < 2 * n + m) {
      done = transfer(process, action, step, phase - n);
    } else if (phase < 2 * (n + m) && action.slice + 1 == loop_.longest) {
      signal(process.rank, step.targets[phase - 2 * n - m]);
    }
    if (!done) return false;
    if (phase + 1 == 2 * n && step.fold == Fold::complete && plans_.size() > 1) {
      for (Value& value : process.accumulator) value = completed(value);
    }
    if (++process.phase < 2 * (n + m)) return true;
    ++process.next;
    process.phase = 0;
    process.length = kUnknown;
    process.accumulator.clear();
    return true;
  }

  bool await(Process& process, const Operand& operand) {
    if (operand.space != Space::flag) return true;
    std::uint64_t& count = flags_[{operand.peer, process.rank, operand.tag}];
    if (count == 0) return false;
    --count;
    return true;
  }

  void signal(Rank rank, const Operand& operand) {
    if (operand.space != Space::flag) return;
    ++flags_[{rank, operand.peer, operand.tag}];
    wake(operand.peer);
  }

  // Reads or writes the slice of one operand; `index` counts sources, then targets. Returns false if the rank must
  // wait, or has failed.
  bool transfer(Process& process, const Action& action, const Step& step, std::size_t index) {
    const bool reads = index < step.sources.size();
    const Operand& operand = reads ? step.sources[index] : step.targets[index - step.sources.size()];
    if (operand.space == Space::flag) return true;
    if (operand.peer >= plans_.size()) return fail(process, "names a rank out of range");
    if (process.length == kUnknown) process.length = length_of(process, step);
    if (process.length == kUnknown) return false;
    if (operand.is_memory() && callers_.length_of(operand) != process.length)
      return fail(process, "has unequal operands");
    if (process.length <= action.slice * slot_elements_) return true;  // The message has no such slice.
    if (reads) return operand.space == Space::lane ? receive(process, operand) : read(process, action, operand);
    if (process.accumulator.empty()) return fail(process, "delivers what it has not");
    return operand.space == Space::lane ? send(process, operand) : write(process, action, operand);
  }

  bool receive(Process& process, const Operand& operand) {
    std::deque<Message>& lane = lanes_[{operand.peer, process.rank, operand.tag}];
    if (lane.empty()) return false;
    if (lane.front().length != process.length) return fail(process, "receives a message of another length");
    accumulate(process, lane.front().values);
    lane.pop_front();
    wake(operand.peer);
    return true;
  }

  bool send(Process& process, const Operand& operand) {
    std::deque<Message>& lane = lanes_[{process.rank, operand.peer, operand.tag}];
    if (lane.size() >= loop_.slots) return false;
    lane.push_back({process.length, process.accumulator});
    wake(operand.peer);
    return true;
  }

  bool read(Process& process, const Action& action, const Operand& operand) {
    const bool scales = operand.space == Space::input && reduces(plans_[process.rank].problem.collective);
    std::vector<Value> values;
    for (const Value* cell : cells(process, action, operand)) values.push_back(scales ? premultiplied(*cell) : *cell);
    accumulate(process, values);
    return text_.empty();
  }

  bool write(Process& process, const Action& action, const Operand& operand) {
    const std::vector<Value*> targets = cells(process, action, operand);
    for (std::size_t i = 0; i < targets.size(); ++i) *targets[i] = process.accumulator[i];
    return text_.empty();
  }

  static void accumulate(Process& process, const std::vector<Value>& values) {
    std::vector<Value>& sum = process.accumulator;
    if (sum.empty()) {
      sum = values;
    } else {
      for (std::size_t i = 0; i < values.size(); ++i) sum[i] = folded(sum[i], values[i]);
    }
  }

  std::uint32_t length_of(const Process& process, const Step& step) {
    const Operand* memory = nullptr;
    for_each_operand(step, [&](const Operand& operand) {
      if (operand.is_memory()) memory = &operand;
    });
    if (memory != nullptr) return callers_.length_of(*memory);
    if (step.sources.empty()) return 0;
    const auto& lane = lanes_[{step.sources[0].peer, process.rank, step.sources[0].tag}];
    return lane.empty() ? kUnknown : lane.front().length;
  }

  // Returns the elements of this slice of an operand. Returns fewer elements and reports a failure if the slice exceeds
  // its memory.
  std::vector<Value*> cells(const Process& process, const Action& action, const Operand& operand) {
    const Geometry& geometry = callers_.geometry(operand.peer);
    std::vector<Value*> result;
    std::uint32_t position = 0;
    for (std::uint32_t i = 0; i < operand.count; ++i) {
      const std::uint32_t unit = operand.unit(i);
      if (!geometry.holds(operand.space, unit)) {
        fail(process, "leaves its memory");
        return result;
      }
      for (std::uint32_t element = geometry.begin(unit); element < geometry.begin(unit + 1); ++element) {
        if (position++ / slot_elements_ != action.slice) continue;
        result.push_back(operand.space == Space::scratch
                             ? &callers_.scratch(operand.peer, action.chunk, element)
                             : &callers_.user(operand.peer, action.chunk, operand.space, element));
      }
    }
    return result;
  }

  // Results ---------------------------------------------------------------------------------------------------------

  void judge_the_end() {
    for (const Process& process : processes_) {
      if (!process.finished) fail(process, "is blocked for ever");
    }
    for (Rank rank = 0; rank < plans_.size(); ++rank) violation(rank, callers_.at_the_end(rank));
    for (const auto& [compression, lane] : lanes_)
      violation(std::get<1>(compression), lane.empty() ? "" : "a message is left over");
    for (const auto& [compression, count] : flags_)
      violation(std::get<1>(compression), count == 0 ? "" : "a signal is left over");
  }

  void violation(Rank rank, const std::string& what) {
    if (what.empty() || !text_.empty()) return;
    text_ = "rank " + std::to_string(rank) + ", operation " + std::to_string(processes_[rank].operation) + ": " + what;
  }

  bool fail(const Process& process, const std::string& what) {
    std::string where;
    if (process.next < process.actions.size()) {
      const Action& action = process.actions[process.next];
      where = "chunk " + std::to_string(action.chunk) + ", round " + std::to_string(action.round) + ", step " +
              std::to_string(action.step) + " ";
    }
    violation(process.rank, where + what);
    return false;
  }

  std::span<const Plan> plans_;
  const Loop loop_;
  std::mt19937_64 random_;
  Callers callers_;
  std::uint32_t slot_elements_ = 1;
  std::deque<Process> processes_;  // By rank.
  std::vector<std::size_t> ready_;
  std::map<Compression, std::deque<Message>> lanes_;
  std::map<Compression, std::uint64_t> flags_;
  std::string text_;
};

}  // namespace

ReferenceResult run_reference(std::span<const Plan> plans, const Loop& loop, std::uint64_t seed) {
  std::vector<Plan> expanded(plans.begin(), plans.end());
  for (Plan& plan : expanded) expand_all_ranks(plan);
  return ReferenceInterpreter(expanded, loop, seed).run();
}

}  // namespace tutti::test
