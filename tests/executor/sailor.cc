#include "tests/executor/sailor.h"

#include <algorithm>

#include "src/executor/team/image.h"

namespace tutti {
namespace {

std::pmr::memory_resource* memory_of(const Voyage& voyage) {
  return voyage.engine == nullptr ? std::pmr::get_default_resource() : voyage.engine->memory();
}

}  // namespace

Sailor::Sailor(const Plan& plan, const std::vector<LaneUse>& uses, const Voyage& voyage, Wires& wires)
    : plan_(plan),
      voyage_(voyage),
      reach_(memory_of(voyage)),
      scratch_(reach_),
      image_(reach_),
      ends_(reach_),
      meetings_(voyage.channels, reach_),
      windows_(plan.problem.ranks, kWholeMemory, reach_),
      visits_(voyage.channels, reach_),
      failed_(1, reach_),
      place_(1, reach_) {
  for (std::uint16_t channel = 0; channel < voyage.channels; ++channel) {
    compiled_.push_back(std::make_unique<CompiledPlan>(
        plan, [&](const Operand& operand, bool sends) { return bind(uses, operand, sends, wires, channel); }));
  }
  const bool lanes = !uses.empty();
  launch_.input.count = launch_.output.count = launch_.scratch_blocks.count = voyage.count;
  launch_.element_bytes = sizeof(Number);
  launch_.loop = voyage.loop;
  launch_.channels = voyage.channels;
  launch_.cut = {.units = program().units, .parts = voyage.loop.pieces * voyage.channels, .granule = voyage.granule};
  launch_.slice_elements = lanes ? slot_elements(voyage) : voyage.count * program().units * plan.problem.ranks;
  scratch_.resize((compiled_[0]->scratch_units() / program().units + 1) * voyage.count);
  launch_.scratch = reinterpret_cast<std::byte*>(scratch_.data());
  for (std::uint32_t i = 0; i < voyage.operations; ++i) {
    cargoes_.emplace_back(plan.problem, plan.steps.self(), voyage.count, i, reach_);
  }
  memory_.reserve(program().widest);
}

void Sailor::sail(const std::vector<std::vector<RankBuffers>>& buffers, Watch& watch) {
  std::vector<RankBuffers> peers = buffers.front();
  launch_.peers = peers.data();
  lay_out();
  FoldArguments arguments;
  arguments.ranks = plan_.problem.ranks;
  const FoldFunction fold = find_fold(DataType::uint64, voyage_.averages ? Reduction::avg : Reduction::sum);
  Interpreter<CpuMachine> interpreter(program(), launch_, CpuMachine(memory_, fold, arguments), memory_.pointers());
  for (std::uint32_t operation = 0; operation < voyage_.operations; ++operation) {
    launch_.self = buffers[operation][plan_.steps.self()];
    std::copy(buffers[operation].begin(), buffers[operation].end(), peers.begin());
    launch_.signature = {operation + 1};
    interpreter.start();
    if (!finish(interpreter, operation, watch)) return;
  }
}

std::vector<TeamCall> Sailor::calls(std::span<MeetingRecord* const> records) {
  std::vector<RankBuffers> peers(plan_.problem.ranks);  // Told apart by their places only.
  launch_.peers = peers.data();
  lay_out();
  const std::uint64_t stage_bytes = is_small(voyage_.protocol) ? slot_elements(voyage_) * sizeof(Number) : 0;
  const std::vector<std::byte> image =
      make_image(program(), launch_, straight_, plan_.problem.ranks, !records.empty(), stage_bytes);
  image_.assign(image.begin(), image.end());
  const std::uint32_t lanes = reinterpret_cast<const Image*>(image.data())->lane_count;
  for (const auto& channel : compiled_)
    ends_.insert(ends_.end(), channel->program().lanes, channel->program().lanes + lanes);
  TeamCall call;
  call.image = image_.data();
  call.ends = ends_.data();
  place_[0] = {records.data(), meetings_.data(), windows_.data(), visits_.data(), failed_.data()};
  call.place = place_.data();
  call.scratch = launch_.scratch;
  call.rank = plan_.steps.self();
  call.task.type = DataType::uint64;
  call.task.reduction = voyage_.averages ? Reduction::avg : Reduction::sum;
  call.task.ranks = plan_.problem.ranks;
  std::vector<TeamCall> calls(voyage_.operations, call);
  for (std::uint32_t operation = 0; operation < voyage_.operations; ++operation) {
    calls[operation].self = buffers(operation);
    calls[operation].signature = {operation + 1};
  }
  return calls;
}

std::string Sailor::complaint() const {
  const Rank rank = plan_.steps.self();
  if (std::count(visits_.begin(), visits_.end(), 0U) != static_cast<std::ptrdiff_t>(visits_.size()))
    return "rank " + std::to_string(rank) + " shows that it is in the others' memory";
  for (std::uint32_t operation = 0; operation < cargoes_.size(); ++operation) {
    const Cargo& cargo = cargoes_[operation];
    const std::string where = "rank " + std::to_string(rank) + ", operation " + std::to_string(operation) + ": ";
    for (std::uint64_t i = 0; i < cargo.outputs; ++i) {
      const Number wanted = expected(plan_.problem, voyage_, cargo.number, rank, i);
      if (cargo.output[i] != wanted) {
        return where + "output " + std::to_string(i) + " is " + std::to_string(cargo.output[i]) + ", not " +
               std::to_string(wanted);
      }
    }
    for (std::uint64_t i = 0; i < cargo.inputs && !plan_.problem.in_place; ++i) {
      if (cargo.input[i] != contribution(cargo.number, rank, i)) return where + "its input was changed";
    }
  }
  return "";
}

void Sailor::lay_out() {
  if (!voyage_.straight) return;
  straight_ = straighten(program(), launch_, !voyage_.averages);
  launch_.straight = straight_.view();
}

LaneState* Sailor::bind(const std::vector<LaneUse>& uses, const Operand& operand, bool sends, Wires& wires,
                        std::uint16_t channel) const {
  const Rank self = plan_.steps.self();
  if (operand.place == Place::flag) {
    LaneSpec spec;
    spec.channel = channel;
    spec.writer = sends ? self : operand.peer;
    spec.reader = sends ? operand.peer : self;
    spec.tag = operand.tag;
    return wires.end(spec, true, sends);
  }
  const auto use = std::find_if(uses.begin(), uses.end(), [&](const LaneUse& each) {
    return each.peer == operand.peer && each.tag == operand.tag && (each.direction == Direction::sends) == sends;
  });
  if (use == uses.end()) return nullptr;
  const LaneSpec spec = spec_of(*use, self, voyage_, channel);
  const bool forward = spec.writer == (sends ? self : operand.peer) && spec.tag == operand.tag;
  return wires.end(spec, forward, sends);
}

bool Sailor::finish(Interpreter<CpuMachine>& interpreter, std::uint32_t operation, Watch& watch) {
  for (;;) {
    const Progress progress = interpreter.advance();
    watch.moves.fetch_add(progress == Progress::done ? 1 : 0);
    if (progress == Progress::done) return true;
    const std::string where = "rank " + std::to_string(plan_.steps.self()) + ", operation " +
                              std::to_string(operation) + ", round " + std::to_string(interpreter.cursor().round);
    if (progress == Progress::mismatch) return fail(where + ": a message of another call", watch);
    while (!interpreter.blocked().over()) {
      if (watch.stuck()) return fail(where + ": waits without end", watch);
    }
  }
}

bool Sailor::fail(const std::string& complaint, Watch& watch) {
  if (!watch.failed.exchange(true)) complaint_ = complaint;
  return false;
}

Convoy::Convoy(const Voyage& voyage, ShmTransport& transport, const std::vector<bool>& in_place)
    : voyage_(voyage),
      reach_(memory_of(voyage)),
      wires_(transport, reach_, voyage.engine == nullptr ? nullptr : voyage.engine->lanes()),
      records_(in_place.size() * voyage.channels * 2, reach_),
      by_rank_(reach_) {
  for (Rank rank = 0; rank < in_place.size(); ++rank) {
    const std::vector<Plan>& plans = voyage.plans[in_place[rank] ? 1 : 0];
    const std::vector<LaneUse> uses = lanes_of(plans, rank, voyage.loop);
    sailors_.push_back(std::make_unique<Sailor>(plans[rank], uses, voyage, wires_));
  }
  const bool meets =
      std::any_of(sailors_.begin(), sailors_.end(), [](const auto& sailor) { return sailor->names_peers(); });
  for (Rank rank = 0; rank < in_place.size() && meets; ++rank)
    by_rank_.push_back(&records_[std::size_t{rank} * voyage.channels * 2]);
}

std::vector<std::vector<TeamCall>> Convoy::calls() {
  std::vector<std::vector<TeamCall>> calls;
  for (const auto& sailor : sailors_) calls.push_back(sailor->calls(by_rank_));
  return calls;
}

void Convoy::load(std::uint32_t operation, std::uint32_t number) {
  for (const auto& sailor : sailors_) sailor->load(operation, number);
}

std::string Convoy::complaint() const {
  for (const auto& sailor : sailors_) {
    std::string complaint = sailor->complaint();
    if (!complaint.empty()) return complaint;
  }
  return "";
}

}  // namespace tutti
