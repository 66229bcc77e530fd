#include "tests/executor/fleet.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "src/executor/compiled_plan.h"
#include "src/executor/cpu/machine.h"
#include "src/executor/straighten.h"

namespace tutti {
namespace {

using Number = std::uint64_t;

constexpr std::uint32_t kBulkBytes = 256;
constexpr std::uint32_t kLines = 8;
constexpr auto kStuck = std::chrono::seconds(60);  // Nothing has moved: the fleet is at a deadlock.

LaneSpec spec_of(const LaneUse& use, Rank self, const Voyage& voyage) {
  const bool sends = use.direction == Direction::sends;
  const LaneForm form = voyage.forms == Forms::one_way ? LaneForm::one_way : use.form;
  bool forward = true;
  if (form == LaneForm::round_trip) forward = !use.answers;
  if (form == LaneForm::swap) forward = sends == (self < use.peer);
  LaneSpec spec;
  spec.writer = sends == forward ? self : use.peer;
  spec.reader = sends == forward ? use.peer : self;
  spec.tag = forward ? use.tag : use.partner_tag;
  spec.partner_tag = form == LaneForm::one_way ? 0 : forward ? use.partner_tag : use.tag;
  spec.form = form;
  spec.protocol = voyage.protocol;
  spec.slot_bytes = voyage.protocol == Protocol::lines ? kLines * kLineBytes : kBulkBytes;
  while ((1U << spec.slot_shift) < voyage.loop.slots) ++spec.slot_shift;
  return spec;
}

// Both lanes of a spec, at both ends.
struct Wire {
  LaneState writing, reading, partner_writing, partner_reading;
};

class Wires {
 public:
  explicit Wires(ShmTransport& transport) : transport_(transport) {}

  LaneState* end(const LaneSpec& spec, bool forward, bool writes) {
    std::unique_ptr<Wire>& wire = wires_[spec];
    if (wire == nullptr) {
      wire = std::make_unique<Wire>();
      const LanePair pair = transport_.view(spec, 0, transport_.create(spec).value()).value();
      wire->writing.view = wire->reading.view = pair.forward;
      wire->partner_writing.view = wire->partner_reading.view = pair.partner;
    }
    if (forward) return writes ? &wire->writing : &wire->reading;
    return writes ? &wire->partner_writing : &wire->partner_reading;
  }

  const std::map<LaneSpec, std::unique_ptr<Wire>>& all() const { return wires_; }

 private:
  ShmTransport& transport_;
  std::map<LaneSpec, std::unique_ptr<Wire>> wires_;
};

// ---- Numbers ----

Number contribution(std::uint32_t operation, Rank rank, std::uint64_t element) {
  return (operation * 7919 + (rank + 1) * 104729 + element * 31) * 2654435761U % 1000003;
}

// What element `i` of the rank's output must be.
Number expected(const Problem& problem, const Voyage& voyage, std::uint32_t operation, Rank rank, std::uint64_t i) {
  const std::uint64_t own = rank * voyage.count + i;
  const std::uint64_t block = i / voyage.count;
  const std::uint64_t rest = i % voyage.count;
  switch (problem.collective) {
    case Collective::all_gather:
    case Collective::gather: return contribution(operation, static_cast<Rank>(block), rest);
    case Collective::broadcast: return contribution(operation, problem.root, i);
    case Collective::scatter: return contribution(operation, problem.root, own);
    case Collective::all_to_all: return contribution(operation, static_cast<Rank>(block), rank * voyage.count + rest);
    default: break;
  }
  Number sum = 0;
  for (Rank other = 0; other < problem.ranks; ++other) {
    sum += contribution(operation, other, problem.collective == Collective::reduce_scatter ? own : i);
  }
  return voyage.averages ? sum / problem.ranks : sum;
}

// What a rank passes to one operation.
struct Cargo {
  std::vector<Number> first, second;  // In place there is only the first.
  Number* input = nullptr;
  Number* output = nullptr;
  std::uint64_t inputs = 0, outputs = 0;

  Cargo(const Problem& problem, Rank rank, std::uint64_t count, std::uint32_t operation)
      : inputs(input_blocks(problem, rank) * count), outputs(output_blocks(problem, rank) * count) {
    const std::int64_t shift = in_place_shift(problem, rank) * static_cast<std::int64_t>(count);
    const bool one = problem.in_place && inputs > 0 && outputs > 0;
    first.assign(one ? std::max(inputs, outputs) : inputs, ~Number{0});
    second.assign(one ? 0 : outputs, ~Number{0});
    input = first.data() + (one && shift > 0 ? shift : 0);
    output = one ? input - shift : second.data();
    for (std::uint64_t i = 0; i < inputs; ++i) input[i] = contribution(operation, rank, i);
  }
  RankBuffers buffers() const { return {reinterpret_cast<std::byte*>(input), reinterpret_cast<std::byte*>(output)}; }
};

// ---- Ranks ----

// What all ranks of a voyage watch, so that one that fails ends all.
struct Watch {
  std::atomic<bool> failed{false};
  std::atomic<std::uint64_t> moves{0};
};

class Sailor {
 public:
  Sailor(const Plan& plan, const std::vector<LaneUse>& uses, const Voyage& voyage, Wires& wires)
      : plan_(plan),
        voyage_(voyage),
        compiled_(plan, [&](const Operand& operand, bool sends) { return bind(uses, operand, sends, wires); }) {
    const Program& program = compiled_.program();
    const bool lanes = !uses.empty();
    launch_.input.count = launch_.output.count = launch_.scratch_blocks.count = voyage.count;
    launch_.element_bytes = sizeof(Number);
    launch_.loop = voyage.loop;
    launch_.cut = {.units = program.units, .parts = voyage.loop.pieces, .granule = voyage.granule};
    launch_.slice_elements = lanes ? slot_elements(voyage.protocol) : voyage.count * program.units * plan.problem.ranks;
    scratch_.resize((compiled_.scratch_units() / program.units + 1) * voyage.count);
    launch_.scratch = reinterpret_cast<std::byte*>(scratch_.data());
    for (std::uint32_t i = 0; i < voyage.operations; ++i) {
      cargoes_.emplace_back(plan.problem, plan.steps.self(), voyage.count, i);
    }
    memory_.reserve(program.widest);
  }

  RankBuffers buffers(std::uint32_t operation) const { return cargoes_[operation].buffers(); }

  // `buffers`: of all ranks, for each operation.
  void sail(const std::vector<std::vector<RankBuffers>>& buffers, Watch& watch) {
    FoldArguments arguments;
    arguments.ranks = plan_.problem.ranks;
    const FoldFunction fold = find_fold(DataType::uint64, voyage_.averages ? Reduction::avg : Reduction::sum);
    Interpreter<CpuMachine> interpreter(compiled_.program(), launch_, CpuMachine(memory_, fold, arguments),
                                        memory_.pointers());
    std::vector<RankBuffers> peers = buffers.front();
    launch_.peers = peers.data();
    if (voyage_.straight) {
      straight_ = straighten(compiled_.program(), launch_, !voyage_.averages);
      launch_.straight = straight_.view();
    }
    for (std::uint32_t operation = 0; operation < voyage_.operations; ++operation) {
      launch_.self = buffers[operation][plan_.steps.self()];
      std::copy(buffers[operation].begin(), buffers[operation].end(), peers.begin());
      launch_.signature = {operation + 1};
      interpreter.start();
      if (!finish(interpreter, operation, watch)) return;
    }
  }

  std::string complaint() const {
    if (!complaint_.empty()) return complaint_;
    const Rank rank = plan_.steps.self();
    for (std::uint32_t operation = 0; operation < cargoes_.size(); ++operation) {
      const Cargo& cargo = cargoes_[operation];
      const std::string where = "rank " + std::to_string(rank) + ", operation " + std::to_string(operation) + ": ";
      for (std::uint64_t i = 0; i < cargo.outputs; ++i) {
        const Number wanted = expected(plan_.problem, voyage_, operation, rank, i);
        if (cargo.output[i] != wanted) {
          return where + "output " + std::to_string(i) + " is " + std::to_string(cargo.output[i]) + ", not " +
                 std::to_string(wanted);
        }
      }
      for (std::uint64_t i = 0; i < cargo.inputs && !plan_.problem.in_place; ++i) {
        if (cargo.input[i] != contribution(operation, rank, i)) return where + "its input was changed";
      }
    }
    return "";
  }

 private:
  LaneState* bind(const std::vector<LaneUse>& uses, const Operand& operand, bool sends, Wires& wires) const {
    const Rank self = plan_.steps.self();
    if (operand.place == Place::flag) {
      LaneSpec spec;
      spec.writer = sends ? self : operand.peer;
      spec.reader = sends ? operand.peer : self;
      spec.tag = operand.tag;
      return wires.end(spec, true, sends);
    }
    const auto use = std::find_if(uses.begin(), uses.end(), [&](const LaneUse& each) {
      return each.peer == operand.peer && each.tag == operand.tag && (each.direction == Direction::sends) == sends;
    });
    if (use == uses.end()) return nullptr;
    const LaneSpec spec = spec_of(*use, self, voyage_);
    const bool forward = spec.writer == (sends ? self : operand.peer) && spec.tag == operand.tag;
    return wires.end(spec, forward, sends);
  }

  bool finish(Interpreter<CpuMachine>& interpreter, std::uint32_t operation, Watch& watch) {
    auto seen = watch.moves.load();
    auto since = std::chrono::steady_clock::now();
    for (;;) {
      const Progress progress = interpreter.advance();
      watch.moves.fetch_add(progress == Progress::done ? 1 : 0);
      if (progress == Progress::done) return true;
      const std::string where = "rank " + std::to_string(plan_.steps.self()) + ", operation " +
                                std::to_string(operation) + ", round " + std::to_string(interpreter.cursor().round);
      if (progress == Progress::mismatch) return fail(where + ": a message of another call", watch);
      while (!interpreter.blocked().over()) {
        if (watch.failed) return false;
        std::this_thread::yield();
        const auto now = std::chrono::steady_clock::now();
        if (watch.moves != seen) {
          seen = watch.moves;
          since = now;
        }
        if (now - since > kStuck) return fail(where + ": waits without end", watch);
      }
    }
  }

  bool fail(const std::string& complaint, Watch& watch) {
    if (!watch.failed.exchange(true)) complaint_ = complaint;
    return false;
  }

  const Plan& plan_;
  const Voyage& voyage_;
  CompiledPlan compiled_;
  MachineMemory memory_;
  Launch launch_;
  std::vector<Number> scratch_;
  std::vector<Cargo> cargoes_;
  StraightProgram straight_;
  std::string complaint_;
};

}  // namespace

std::uint64_t slot_elements(Protocol protocol) {
  return (protocol == Protocol::lines ? kLines * kLineData : kBulkBytes) / sizeof(Number);
}

std::string Fleet::run(const Voyage& voyage) {
  const auto ranks = static_cast<Rank>(voyage.plans[0].size());
  Wires wires(transport_);
  std::vector<std::unique_ptr<Sailor>> sailors;
  for (Rank rank = 0; rank < ranks; ++rank) {
    const bool in_place = voyage.way == Way::in_place || (voyage.way == Way::mixed && random_() % 2 == 0);
    const std::vector<Plan>& plans = voyage.plans[in_place ? 1 : 0];
    const std::vector<LaneUse> uses = lanes_of(plans, rank, voyage.loop);
    sailors.push_back(std::make_unique<Sailor>(plans[rank], uses, voyage, wires));
  }
  std::vector<std::vector<RankBuffers>> buffers(voyage.operations);
  for (std::uint32_t operation = 0; operation < voyage.operations; ++operation) {
    for (const auto& sailor : sailors) buffers[operation].push_back(sailor->buffers(operation));
  }
  for (const auto& [spec, wire] : wires.all()) {
    if (spec.slot_bytes > 0) ++lanes_[{spec.form, spec.protocol}];
  }
  Watch watch;
  std::vector<std::thread> threads;
  for (const auto& sailor : sailors) threads.emplace_back([&] { sailor->sail(buffers, watch); });
  for (std::thread& thread : threads) thread.join();
  std::string complaint;
  for (const auto& sailor : sailors) {
    if (complaint.empty()) complaint = sailor->complaint();
    if (watch.failed && sailor->complaint().find("output") == std::string::npos) complaint = sailor->complaint();
  }
  return complaint;
}

}  // namespace tutti
