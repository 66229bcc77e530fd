#include "src/plan/verify_run.h"

#include <algorithm>

#include "src/plan/print.h"

namespace tutti {
namespace {

constexpr std::uint32_t kUnset = ~0u;

}  // namespace

Run::Run(const CellProgram& program, const Loop& loop, const Span& span)
    : program_(program), loop_(loop), span_(span), store_(program, span) {
  processes_.resize(program.plans.size());
  for (Rank rank = 0; rank < processes_.size(); ++rank) processes_[rank].now.rank = rank;
  queues_.resize(program.fifos.size());
}

// A blocked rank becomes ready again when its queue changes, so each step is examined about once.
Status Run::execute() {
  for (Rank rank = 0; rank < program_.plans.size(); ++rank) TUTTI_CHECK_OK(enter(rank));
  do {
    while (!ready_.empty()) {
      Process& process = processes_[ready_.back()];
      ready_.pop_back();
      TUTTI_CHECK_OK(advance(process));
    }
  } while (add_slot());
  return blocked();
}

Status Run::enter(Rank rank) {
  Process& process = processes_[rank];
  TUTTI_CHECK_OK(store_.enter(process.now));
  process.segment = 0;
  process.finished = false;
  ready_.push_back(rank);
  return {};
}

// The rank returns and enters the next operation.
Status Run::finish(Process& process) {
  process.finished = true;
  process.now.chunk = 0;
  TUTTI_CHECK_OK(store_.leave(process.now));
  if (process.now.operation + 1 == span_.operations) return {};
  ++process.now.operation;
  return enter(process.now.rank);
}

Status Run::advance(Process& process) {
  process.lacks_slot = false;
  process.lacks_message = kUnset;
  const Plan& plan = program_.plans[process.now.rank];
  const std::vector<std::uint32_t>& first_access = program_.first_access[process.now.rank];
  while (!process.finished) {
    if (!process.inside && !begin_segment(process)) return finish(process);
    for (; process.now.step < process.end; ++process.now.step) {
      const Step step = plan.steps[process.now.step];
      const Access* access = program_.accesses.data() + first_access[process.now.step];
      if (!can_fire(process, step, access)) return {};
      TUTTI_CHECK_OK(fire(process.now, step, access));
    }
    process.inside = false;
    ++process.segment;
  }
  return {};
}

// Returns false if no segment is left.
bool Run::begin_segment(Process& process) {
  const std::uint32_t stages = program_.stages();
  const std::uint32_t segments = (span_.chunks + loop_.skew * (stages - 1)) * stages;
  const bool latest_first = loop_.order == StageOrder::latest_first && loop_.skew > 0;
  for (; process.segment < segments; ++process.segment) {
    const std::uint32_t position = process.segment % stages;
    const std::uint32_t stage = latest_first ? stages - 1 - position : position;
    const std::uint32_t chunk = process.segment / stages - loop_.skew * stage;
    if (chunk >= span_.chunks) continue;  // Includes chunks before the first: the difference wraps around.
    process.now.chunk = chunk;
    const Plan& plan = program_.plans[process.now.rank];
    process.now.step = plan.rounds[program_.stage_begin(stage)];
    process.end = plan.rounds[program_.stage_end(stage)];
    process.inside = true;
    return true;
  }
  return false;
}

// A step fires when all its messages have arrived and all its slots are free. An executor that receives and delivers
// them one by one never falls behind this model.
bool Run::can_fire(Process& process, const Step& step, const Access* access) {
  for (std::size_t k = 0; k < step.sources.size(); ++k) {
    if (access[k].space < Space::lane || queues_[access[k].index].waiting > access[k].occurrence) continue;
    process.lacks_message = access[k].index;
    return false;
  }
  access += step.sources.size();
  for (std::size_t k = 0; k < step.targets.size(); ++k) {
    if (access[k].space != Space::lane || queues_[access[k].index].waiting + access[k].occurrence < slots_) continue;
    process.lacks_slot = true;
    return false;
  }
  return true;
}

Status Run::fire(const Moment& now, const Step& step, const Access* access) {
  has_classes_ = false;
  const std::size_t operands = step.sources.size() + step.targets.size();
  for (std::size_t k = 0; k < operands && !has_classes_; ++k) {
    if (access[k].space >= Space::lane) continue;
    has_classes_ = true;
    classes_ = access[k].index;
    cells_ = access[k].count;
  }
  TUTTI_CHECK_OK(gather(now, step, access));
  round(step);
  return deliver(now, step.targets, access + step.sources.size());
}

// Rounds the values that the step sends, and those that it stores if the collective requires it.
void Run::round(const Step& step) {
  if (!span_.rounded) return;
  sent_ = result_;
  for (Value& value : sent_) value = store_.values().rounded(value);
  const RoundedStores rounded_stores = rounded_stores_of(program_.plans[0].problem.collective);
  const auto is_lane = [](const Operand& operand) { return operand.space == Space::lane; };
  const bool from_memory = std::none_of(step.sources.begin(), step.sources.end(), is_lane);
  if (rounded_stores == RoundedStores::sums ? step.fold == Fold::complete
                                            : rounded_stores == RoundedStores::copies && from_memory)
    result_ = sent_;
}

Status Run::gather(const Moment& now, const Step& step, const Access* access) {
  taken_.clear();
  // Receive first: messages carry the order of the reads that follow.
  for (std::size_t k = 0; k < step.sources.size(); ++k) {
    taken_.push_back(access[k].space < Space::lane ? Message() : pop(now, access[k].index));
  }
  bool first = true;
  for (std::size_t k = 0; k < step.sources.size(); ++k) {
    if (access[k].space == Space::flag) continue;
    if (access[k].space == Space::lane) {
      const Message& message = taken_[k];
      TUTTI_CHECK_OK(check_lengths(now, message));
      operand_.assign(pool_.begin() + message.first, pool_.begin() + message.first + message.count);
      TUTTI_CHECK_OK(combine(now, step, first));
      first = false;
      continue;
    }
    for (std::uint32_t owner = 0; owner < access[k].owners; ++owner) {
      TUTTI_CHECK_OK(store_.read(now, access[k].of(owner), operand_));
      TUTTI_CHECK_OK(combine(now, step, first));
      first = false;
    }
    if (access[k].owners == 1) continue;
    for (Value& value : result_) value = store_.values().in_unknown_order(value, now.rank, now.step);
  }
  const auto ranks = static_cast<Rank>(program_.plans.size());
  if (step.fold == Fold::partial || ranks == 1) return {};
  for (const Value value : result_) {
    if (store_.values().complete(value, ranks)) continue;
    return store_.violation(now, "its fold is marked complete, but holds " + store_.values().describe(value, program_));
  }
  return {};
}

// Compares unit by unit, not only totals: units of a block differ by one element if `units` does not divide the count.
Status Run::check_lengths(const Moment& now, const Message& message) {
  if (!has_classes_) {  // The message is forwarded with its own length.
    has_classes_ = true;
    classes_ = message.classes;
    cells_ = message.count;
    return {};
  }
  const bool agree = message.count == cells_ && program_.alike(message.classes, classes_, cells_);
  return agree ? Status() : store_.violation(now, "the length of a message differs between sender and receiver");
}

Status Run::combine(const Moment& now, const Step& step, bool first) {
  if (first) {
    std::swap(result_, operand_);
    return {};
  }
  for (std::size_t i = 0; i < result_.size(); ++i) {
    const Value sum = store_.values().sum(result_[i], operand_[i]);
    if (sum == 0) {
      return store_.violation(now, "its operands belong to different units, chunks or operations: " +
                                       store_.values().describe(result_[i], program_) + " and " +
                                       store_.values().describe(operand_[i], program_) + " in " +
                                       describe(step, now.rank));
    }
    result_[i] = sum;
  }
  return {};
}

Status Run::deliver(const Moment& now, std::span<const Operand> targets, const Access* access) {
  Message message{
      .first = static_cast<std::uint32_t>(pool_.size()), .count = has_classes_ ? cells_ : 0, .classes = classes_};
  std::uint32_t readers = 0;
  bool sends = false;
  for (std::size_t k = 0; k < targets.size(); ++k) {
    if (access[k].space >= Space::lane) ++readers;
    for (std::uint32_t owner = 0; access[k].space < Space::lane && owner < access[k].owners; ++owner)
      TUTTI_CHECK_OK(store_.write(now, access[k].of(owner), result_));
    sends |= access[k].space == Space::lane;
  }
  if (readers == 0) return {};
  if (Races* races = store_.races()) message.snapshot = races->release(now.rank, readers);
  const std::vector<Value>& sent = span_.rounded ? sent_ : result_;
  if (sends) pool_.insert(pool_.end(), sent.begin(), sent.end());
  for (std::size_t k = 0; k < targets.size(); ++k) {
    if (access[k].space >= Space::lane) push(access[k].index, message);
  }
  return {};
}

Run::Message Run::pop(const Moment& now, std::uint32_t index) {
  Queue& queue = queues_[index];
  const Message message = messages_[queue.first];
  queue.first = message.next;
  --queue.waiting;
  if (Races* races = store_.races()) races->acquire(now.rank, message.snapshot);
  const Rank rank = program_.fifos[index].writer;
  Process& writer = processes_[rank];
  if (writer.lacks_slot) {
    writer.lacks_slot = false;
    ready_.push_back(rank);
  }
  return message;
}

void Run::push(std::uint32_t index, Message message) {
  Queue& queue = queues_[index];
  const auto number = static_cast<std::uint32_t>(messages_.size());
  messages_.push_back(message);
  if (queue.waiting == 0) queue.first = number;
  else messages_[queue.last].next = number;
  queue.last = number;
  ++queue.waiting;
  const Rank rank = program_.fifos[index].reader;
  Process& reader = processes_[rank];
  if (reader.lacks_message == index) {
    reader.lacks_message = kUnset;
    ready_.push_back(rank);
  }
}

// No rank can proceed with this many slots. Adds one slot and resumes the ranks that wait for slots. More slots only
// extend the run, so it need not restart, and the final number is the minimum that suffices.
bool Run::add_slot() {
  for (Process& process : processes_) {
    if (process.lacks_slot) ready_.push_back(process.now.rank);
  }
  if (ready_.empty()) return false;
  ++slots_;
  return true;
}

// No rank can proceed, and no rank lacks a slot. Either all ranks have finished, or some wait for messages in a cycle.
Status Run::blocked() const {
  for (const Process& process : processes_) {
    if (process.lacks_message == kUnset) continue;
    const Fifo& fifo = program_.fifos[process.lacks_message];
    return store_.violation(process.now, std::string("blocked: waits for a ") +
                                             (fifo.space == Space::lane ? "message" : "signal") + " of rank " +
                                             std::to_string(fifo.writer) + " (tag " + std::to_string(fifo.tag) +
                                             "), which is blocked, too");
  }
  return {};
}

}  // namespace tutti
