#include "tests/executor/sailor.h"

#include <algorithm>

#include "src/executor/team/image.h"

namespace tutti::test {
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
  launch_.element_bytes = voyage.element_bytes;
  launch_.loop = voyage.loop;
  launch_.channels = voyage.channels;
  launch_.cut = {.units = program().units, .parts = voyage.loop.pieces * voyage.channels, .granule = voyage.granule};
  launch_.slice_elements = lanes ? slot_elements(voyage) : voyage.count * program().units * plan.problem.ranks;
  scratch_.resize((compiled_[0]->scratch_units() / program().units + 1) * voyage.count);
  launch_.scratch = reinterpret_cast<std::byte*>(scratch_.data());
  for (std::uint32_t i = 0; i < voyage.operations; ++i) {
    cargoes_.emplace_back(plan.problem, plan.steps.self(), voyage, i, reach_);
  }
  memory_.reserve(program().widest);
}

void Sailor::sail(const std::vector<std::vector<RankBuffers>>& buffers, Watch& watch) {
  for (std::uint32_t operation = 0; operation < voyage_.operations; ++operation) {
    start(buffers[operation], operation);
    // Ranks that run from the list of moves meet others that interpret, on the same lanes.
    const bool briefly =
        !moves_.empty() && (operation + plan_.steps.self()) % 2 == 0 && interpreter_->machine().plain();
    if (!(briefly ? run_briefly(operation, watch) : finish(operation, watch))) return;
  }
}

void Sailor::start(const std::vector<RankBuffers>& buffers, std::uint32_t operation) {
  const Rank self = plan_.steps.self();
  const bool first = peers_.empty();
  peers_.resize(buffers.size());
  std::copy(buffers.begin(), buffers.end(), peers_.begin());
  launch_.peers = peers_.data();
  if (first) lay_out();
  launch_.self = buffers[self];
  launch_.signature = {operation + 1};
  const FoldTask task = task_of(voyage_, operation, self);
  FoldArguments arguments;
  arguments.ranks = task.ranks;
  arguments.manners = manners();
  CpuMachine machine(memory_, find_fold(task.type, task.reduction), arguments);
  if (task.reduction == Reduction::pre_mul_sum) machine.scale(task.scale, task.integer_scale);
  interpreter_.emplace(program(), launch_, machine, memory_.pointers());
}

std::vector<TeamCall> Sailor::calls(std::span<MeetingRecord* const> records) {
  std::vector<RankBuffers> peers(plan_.problem.ranks);  // Told apart by their places only.
  launch_.peers = peers.data();
  lay_out();
  const std::uint64_t stage_bytes = is_small(voyage_.protocol) ? slot_elements(voyage_) * voyage_.element_bytes : 0;
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
  std::vector<TeamCall> calls(voyage_.operations, call);
  for (std::uint32_t operation = 0; operation < voyage_.operations; ++operation) {
    calls[operation].self = buffers(operation);
    calls[operation].signature = {operation + 1};
    calls[operation].task = task_of(voyage_, operation, call.rank);
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
      if (cargo.output_number(i) != wanted) {
        return where + "output " + std::to_string(i) + " is " + std::to_string(cargo.output_number(i)) + ", not " +
               std::to_string(wanted);
      }
    }
    for (std::uint64_t i = 0; i < cargo.inputs && !plan_.problem.in_place; ++i) {
      if (cargo.input_number(i) != contribution(cargo.number, rank, i)) return where + "its input was changed";
    }
  }
  return "";
}

std::string Sailor::differs_from(const Sailor& other) const {
  for (std::uint32_t operation = 0; operation < cargoes_.size(); ++operation) {
    for (const auto part : {&Cargo::first, &Cargo::second}) {
      const auto found = std::as_bytes(std::span(cargoes_[operation].*part));
      const auto wanted = std::as_bytes(std::span(other.cargoes_[operation].*part));
      const auto at = std::mismatch(found.begin(), found.end(), wanted.begin(), wanted.end()).first - found.begin();
      if (at == static_cast<std::ptrdiff_t>(found.size())) continue;
      const FoldTask task = task_of(voyage_, operation, plan_.steps.self());
      return "rank " + std::to_string(plan_.steps.self()) + ", " + name(task.reduction) + " of " + name(task.type) +
             (part == &Cargo::first ? ": the input, or the one buffer," : ": the output") + " differs at byte " +
             std::to_string(at);
    }
  }
  return "";
}

// Some ranks store back what they have read, others do not, or only what is short.
CacheManners Sailor::manners() const {
  if (plan_.steps.self() % 2 == 1) return {};
  const CacheManners all = {.stored_back_bytes = 0, .fetches_targets = false, .libc_copies_bytes = 64};
  return plan_.steps.self() % 4 == 2 ? all.of_copies() : all;
}

void Sailor::lay_out() {
  if (!voyage_.straight) return;
  straight_ = straighten(program(), launch_,
                         {.copies = copies(voyage_),
                          .stored_back_bytes = voyage_.engine != nullptr ? UINT64_MAX : manners().stored_back_bytes,
                          .stored_back_end_bytes = manners().stored_back_end_bytes});
  launch_.straight = straight_.view();
  moves_ = brief(launch_, program().widest);
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

bool Sailor::finish(std::uint32_t operation, Watch& watch) {
  for (;;) {
    const Progress progress = advance();
    watch.moves.fetch_add(progress == Progress::done ? 1 : 0);
    if (progress == Progress::done) return true;
    const std::string where = "rank " + std::to_string(plan_.steps.self()) + ", operation " +
                              std::to_string(operation) + ", round " + std::to_string(interpreter_->cursor().round);
    if (progress == Progress::mismatch) return fail(where + ": a message of another call", watch);
    while (!interpreter_->blocked().over()) {
      if (watch.stuck()) return fail(where + ": waits without end", watch);
    }
  }
}

bool Sailor::run_briefly(std::uint32_t operation, Watch& watch) {
  struct Hooks {
    Watch& watch;
    int looks = 0;
    void look() { ++looks; }
    Status await(const Blocked& blocked, Progress progress) {
      if (progress == Progress::mismatch) return internal_error("a message of another call");
      while (!blocked.over()) {
        if (watch.stuck()) return internal_error("waits without end");
      }
      return {};
    }
  } hooks{watch};
  const Status status = BriefRun(moves_, launch_.signature, interpreter_->machine(), hooks).run();
  watch.moves.fetch_add(1);
  ++brief_runs_;
  const std::string where = "rank " + std::to_string(plan_.steps.self()) + ", operation " + std::to_string(operation);
  if (hooks.looks > 1) return fail(where + ": says more than once that it has begun to wait", watch);
  return status.ok() || fail(where + ", briefly: " + status.message(), watch);
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

std::string Convoy::sail_in_turns() {
  constexpr int kIdleRounds = 2;
  for (std::uint32_t operation = 0; operation < voyage_.operations; ++operation) {
    std::vector<RankBuffers> buffers;
    for (const auto& sailor : sailors_) buffers.push_back(sailor->buffers(operation));
    for (const auto& sailor : sailors_) sailor->start(buffers, operation);
    std::size_t done = 0;
    for (int idle = 0; done < sailors_.size() && idle < kIdleRounds; ++idle) {
      done = 0;
      for (const auto& sailor : sailors_) {
        const Cursor before = sailor->cursor();
        const Progress progress = sailor->advance();
        if (progress == Progress::mismatch) return "a message of another call";
        if (!(sailor->cursor() == before)) idle = 0;
        if (progress == Progress::done) ++done;
      }
    }
    if (done < sailors_.size()) return "no rank gets ahead in operation " + std::to_string(operation);
  }
  return "";
}

std::string Convoy::differs_from(const Convoy& other) const {
  for (std::size_t rank = 0; rank < sailors_.size(); ++rank) {
    std::string difference = sailors_[rank]->differs_from(*other.sailors_[rank]);
    if (!difference.empty()) return difference;
  }
  return "";
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

}  // namespace tutti::test
