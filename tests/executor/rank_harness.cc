#include "tests/executor/rank_harness.h"

#include <algorithm>

#include "src/executor/thread_block/image.h"
#include "src/plan/message_rounds.h"

namespace tutti::test {
namespace {

constexpr Number kGuard = 0x5ca7c4;  // At the end of scratch.

std::pmr::memory_resource* memory_of(const TestCall& test_call) {
  return test_call.engine == nullptr ? std::pmr::get_default_resource() : test_call.engine->memory();
}

}  // namespace

RankHarness::RankHarness(const Plan& plan, const std::vector<LaneUse>& uses, bool rounds, const TestCall& test_call,
                         TestLanes& lanes_made)
    : plan_(plan),
      rounds_(rounds),
      test_call_(test_call),
      reach_(memory_of(test_call)),
      scratch_(reach_),
      image_(reach_),
      exchange_counts_(test_call.channels, reach_),
      windows_(plan.problem.ranks, kWholeMemory, reach_),
      accesses_(1, reach_),
      failed_(1, reach_),
      exchange_(1, reach_) {
  for (std::uint16_t channel = 0; channel < test_call.channels; ++channel) {
    compiled_.push_back(std::make_unique<CompiledPlan>(
        plan, [&](const Operand& operand, bool sends) { return bind(uses, operand, sends, lanes_made, channel); }));
  }
  const bool lanes = !uses.empty();
  launch_.input.count = launch_.output.count = launch_.scratch_blocks.count = test_call.count;
  launch_.element_bytes = test_call.element_bytes;
  launch_.loop = test_call.loop;
  launch_.channels = test_call.channels;
  launch_.cut = {
      .units = program().units, .parts = test_call.loop.chunks * test_call.channels, .granule = test_call.granule};
  launch_.slice_elements = lanes ? slot_elements(test_call) : test_call.count * program().units * plan.problem.ranks;
  std::uint64_t scratch = (compiled_[0]->scratch_units() / program().units + 1) * test_call.count;
  if (test_call.loop.ring > 0) {
    launch_.ring_elements = part_size((test_call.count + program().units - 1) / program().units, launch_.cut);
    scratch = launch_.ring_offset(compiled_[0]->scratch_units(), 0);
  }
  scratch_.resize((scratch * test_call.element_bytes + sizeof(Number) - 1) / sizeof(Number));
  scratch_.push_back(kGuard);
  for (std::uint32_t i = 0; i < test_call.operations; ++i) {
    test_buffers_.emplace_back(plan.problem, plan.steps.self(), test_call, i, reach_);
  }
  memory_.reserve(program().widest);
}

void RankHarness::run(const std::vector<std::vector<RankBuffers>>& buffers, Watch& watch) {
  for (std::uint32_t operation = 0; operation < test_call_.operations; ++operation) {
    start(buffers[operation], operation);
    // Some ranks run compiled schedules, others interpret plans, on the same lanes.
    const bool briefly =
        !moves_.empty() && (operation + plan_.steps.self()) % 2 == 0 && interpreter_->backend().plain();
    if (!(briefly ? run_briefly(operation, watch) : finish(operation, watch))) return;
  }
}

void RankHarness::start(const std::vector<RankBuffers>& buffers, std::uint32_t operation) {
  const Rank self = plan_.steps.self();
  const bool first = peers_.empty();
  peers_.resize(buffers.size());
  std::copy(buffers.begin(), buffers.end(), peers_.begin());
  launch_.peers = peers_.data();
  if (first) lay_out();
  launch_.self = buffers[self];
  launch_.signature = {operation + 1};
  const FoldTask task = task_of(test_call_, operation, self);
  FoldArguments arguments;
  arguments.ranks = task.ranks;
  arguments.cache_policy = cache_policy();
  CpuBackend backend(memory_, find_fold(task.type, task.reduction), arguments);
  if (task.reduction == Reduction::pre_mul_sum)
    backend.scale({.scale = task.scale, .integer_scale = task.integer_scale});
  interpreter_.emplace(program(), launch_, backend, memory_.pointers());
}

std::vector<KernelCall> RankHarness::calls(std::span<AddressRecord* const> records,
                                           std::span<std::byte* const> scratch) {
  std::vector<RankBuffers> peers(plan_.problem.ranks);  // Peers are distinguished by their positions only.
  launch_.peers = peers.data();
  lay_out();
  const std::uint64_t stage_bytes =
      has_inline_flags(test_call_.protocol) ? slot_elements(test_call_) * test_call_.element_bytes : 0;
  const std::vector<std::byte> image =
      make_image(program(), launch_, straight_, plan_.problem.ranks, !records.empty(), stage_bytes);
  image_.assign(image.begin(), image.end());
  const std::uint32_t lanes = reinterpret_cast<const Image*>(image.data())->lane_count;
  for (const auto& channel : compiled_) {
    const auto ends = std::as_bytes(std::span(channel->program().lanes, lanes));
    image_.insert(image_.end(), ends.begin(), ends.end());
  }
  KernelCall call;
  call.image_bytes = static_cast<std::uint32_t>(image.size());
  call.lanes = lanes;
  call.image = image_.data();
  exchange_[0] = {records.data(),   exchange_counts_.data(), windows_.data(),
                  accesses_.data(), failed_.data(),          scratch.data()};
  const bool accesses_scratch = reinterpret_cast<const Image*>(image.data())->accesses_scratch != 0;
  call.accesses_peers = records.empty() ? 0 : 1;
  const bool ll = reinterpret_cast<const Image*>(image.data())->ll != Image::kNotLl;
  if (!records.empty() || accesses_scratch) call.exchange = exchange_.data();
  call.rank = plan_.steps.self();
  std::vector<KernelCall> calls(test_call_.operations, call);
  for (std::uint32_t operation = 0; operation < test_call_.operations; ++operation) {
    calls[operation].self = buffers(operation);
    calls[operation].signature = {operation + 1};
    calls[operation].task = task_of(test_call_, operation, call.rank);
    // LlCall runs the ranks of one call, Channel those of the next, and both some of the one before.
    const std::uint32_t kind = operation % 3;
    calls[operation].ll = ll && (kind == 0 || (kind == 1 && call.rank % 2 == 0)) ? 1 : 0;
  }
  return calls;
}

std::string RankHarness::error() const {
  const Rank rank = plan_.steps.self();
  if (accesses_[0].any()) return "rank " + std::to_string(rank) + " shows that it is in the others' memory";
  if (scratch_.back() != kGuard) return "rank " + std::to_string(rank) + ": its scratch was written beyond its end";
  for (std::uint32_t operation = 0; operation < test_buffers_.size(); ++operation) {
    const TestBuffers& test_buffers = test_buffers_[operation];
    const std::string where = "rank " + std::to_string(rank) + ", operation " + std::to_string(operation) + ": ";
    for (std::uint64_t i = 0; i < test_buffers.outputs; ++i) {
      const Number wanted = expected(plan_.problem, test_call_, test_buffers.number, rank, i);
      if (test_buffers.output_number(i) != wanted) {
        return where + "output " + std::to_string(i) + " is " + std::to_string(test_buffers.output_number(i)) +
               ", not " + std::to_string(wanted);
      }
    }
    for (std::uint64_t i = 0; i < test_buffers.inputs && !plan_.problem.in_place; ++i) {
      if (test_buffers.input_number(i) != contribution(test_buffers.number, rank, i))
        return where + "its input was changed";
    }
  }
  return "";
}

std::string RankHarness::differs_from(const RankHarness& other) const {
  for (std::uint32_t operation = 0; operation < test_buffers_.size(); ++operation) {
    for (const auto part : {&TestBuffers::first, &TestBuffers::second}) {
      const auto found = std::as_bytes(std::span(test_buffers_[operation].*part));
      const auto wanted = std::as_bytes(std::span(other.test_buffers_[operation].*part));
      const auto at = std::mismatch(found.begin(), found.end(), wanted.begin(), wanted.end()).first - found.begin();
      if (at == static_cast<std::ptrdiff_t>(found.size())) continue;
      const FoldTask task = task_of(test_call_, operation, plan_.steps.self());
      return "rank " + std::to_string(plan_.steps.self()) + ", " + name(task.reduction) + " of " + name(task.type) +
             (part == &TestBuffers::first ? ": the input, or the one buffer," : ": the output") + " differs at byte " +
             std::to_string(at);
    }
  }
  return "";
}

// Returns different policies by rank: some ranks store back the data that they read, others do not, or only short data.
CachePolicy RankHarness::cache_policy() const {
  if (plan_.steps.self() % 2 == 1) return {};
  const CachePolicy all = {.stored_back_bytes = 0, .fetches_targets = false, .libc_copies_bytes = 64};
  return plan_.steps.self() % 4 == 2 ? all.of_copies() : all;
}

void RankHarness::lay_out() {
  if (!test_call_.straight) return;
  straight_ =
      straighten(program(), launch_,
                 {.copies = copies(test_call_),
                  .together = test_call_.engine != nullptr,
                  .rounds = rounds_,
                  .stored_back_bytes = test_call_.engine != nullptr ? UINT64_MAX : cache_policy().stored_back_bytes,
                  .stored_back_end_bytes = cache_policy().stored_back_end_bytes});
  launch_.straight = straight_.view();
  moves_ = brief(launch_, program().widest);
}

LaneState* RankHarness::bind(const std::vector<LaneUse>& uses, const Operand& operand, bool sends,
                             TestLanes& lanes_made, std::uint16_t channel) const {
  const Rank self = plan_.steps.self();
  if (operand.space == Space::flag) {
    LaneSpec spec;
    spec.channel = channel;
    spec.writer = sends ? self : operand.peer;
    spec.reader = sends ? operand.peer : self;
    spec.tag = operand.tag;
    return lanes_made.end(spec, true, sends);
  }
  const auto use = std::find_if(uses.begin(), uses.end(), [&](const LaneUse& each) {
    return each.peer == operand.peer && each.tag == operand.tag && (each.direction == Direction::sends) == sends;
  });
  if (use == uses.end()) return nullptr;
  const LaneSpec spec = spec_of(*use, self, test_call_, channel);
  const bool forward = spec.writer == (sends ? self : operand.peer) && spec.tag == operand.tag;
  return lanes_made.end(spec, forward, sends);
}

bool RankHarness::finish(std::uint32_t operation, Watch& watch) {
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

bool RankHarness::run_briefly(std::uint32_t operation, Watch& watch) {
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
  const Status status = BriefRun(moves_, launch_.signature, interpreter_->backend(), hooks).run();
  watch.moves.fetch_add(1);
  ++brief_runs_;
  const std::string where = "rank " + std::to_string(plan_.steps.self()) + ", operation " + std::to_string(operation);
  if (hooks.looks > 1) return fail(where + ": reports more than once that it has begun to wait", watch);
  return status.ok() || fail(where + ", briefly: " + status.message(), watch);
}

bool RankHarness::fail(const std::string& error, Watch& watch) {
  if (!watch.failed.exchange(true)) error_ = error;
  return false;
}

RankSet::RankSet(const TestCall& test_call, ShmTransport& transport, const std::vector<bool>& in_place)
    : test_call_(test_call),
      reach_(memory_of(test_call)),
      lanes_made_(transport, reach_, test_call.engine == nullptr ? nullptr : test_call.engine->lanes()),
      records_(in_place.size() * test_call.channels * 2, reach_),
      by_rank_(reach_),
      scratch_(reach_) {
  bool rounds[2];
  for (int k = 0; k < 2; ++k)
    rounds[k] = !test_call.plans[k].empty() && messages_cross_rounds(test_call.plans[k], test_call.loop);
  for (Rank rank = 0; rank < in_place.size(); ++rank) {
    const std::vector<Plan>& plans = test_call.plans[in_place[rank] ? 1 : 0];
    const std::vector<LaneUse> uses = lanes_of(plans, rank, test_call.loop);
    harnesses_.push_back(
        std::make_unique<RankHarness>(plans[rank], uses, rounds[in_place[rank] ? 1 : 0], test_call, lanes_made_));
  }
  for (const auto& harness : harnesses_) scratch_.push_back(harness->scratch());
  const bool meets =
      std::any_of(harnesses_.begin(), harnesses_.end(), [](const auto& harness) { return harness->names_peers(); });
  for (Rank rank = 0; rank < in_place.size() && meets; ++rank)
    by_rank_.push_back(&records_[std::size_t{rank} * test_call.channels * 2]);
}

std::vector<std::vector<KernelCall>> RankSet::calls() {
  std::vector<std::vector<KernelCall>> calls;
  for (const auto& harness : harnesses_) calls.push_back(harness->calls(by_rank_, scratch_));
  return calls;
}

std::string RankSet::run_time_sliced() {
  constexpr int kIdleRounds = 2;
  for (std::uint32_t operation = 0; operation < test_call_.operations; ++operation) {
    std::vector<RankBuffers> buffers;
    for (const auto& harness : harnesses_) buffers.push_back(harness->buffers(operation));
    for (const auto& harness : harnesses_) harness->start(buffers, operation);
    std::size_t done = 0;
    for (int idle = 0; done < harnesses_.size() && idle < kIdleRounds; ++idle) {
      done = 0;
      for (const auto& harness : harnesses_) {
        const Cursor before = harness->cursor();
        const Progress progress = harness->advance();
        if (progress == Progress::mismatch) return "a message of another call";
        if (!(harness->cursor() == before)) idle = 0;
        if (progress == Progress::done) ++done;
      }
    }
    if (done < harnesses_.size()) return "no rank gets ahead in operation " + std::to_string(operation);
  }
  return "";
}

std::string RankSet::differs_from(const RankSet& other) const {
  for (std::size_t rank = 0; rank < harnesses_.size(); ++rank) {
    std::string difference = harnesses_[rank]->differs_from(*other.harnesses_[rank]);
    if (!difference.empty()) return difference;
  }
  return "";
}

void RankSet::load(std::uint32_t operation, std::uint32_t number) {
  for (const auto& harness : harnesses_) harness->load(operation, number);
}

std::string RankSet::error() const {
  for (const auto& harness : harnesses_) {
    std::string error = harness->error();
    if (!error.empty()) return error;
  }
  return "";
}

}  // namespace tutti::test
