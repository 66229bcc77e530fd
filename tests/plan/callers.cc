#include "tests/plan/callers.h"

#include <algorithm>

namespace tutti::test {
namespace {

constexpr std::uint64_t kPreMultiplier = 5;
constexpr std::uint64_t kAverage = 3;

std::uint64_t mix(std::uint64_t x) {  // The finalizer of splitmix64.
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

Geometry geometry_of(const Plan& plan, Rank rank, std::uint32_t elements) {
  const Problem& problem = plan.problem;
  const std::int64_t shift = problem.in_place ? in_place_shift(problem, rank) : input_blocks(problem, rank);
  Geometry geometry{.units = plan.shape.units, .elements = elements};
  geometry.input_blocks = input_blocks(problem, rank);
  geometry.output_blocks = output_blocks(problem, rank);
  // In place, input block i is output block i + shift; otherwise the output follows the input.
  geometry.input_base = problem.in_place ? static_cast<std::uint32_t>(std::max<std::int64_t>(shift, 0)) : 0;
  geometry.output_base = static_cast<std::uint32_t>(problem.in_place ? std::max<std::int64_t>(-shift, 0) : shift);
  geometry.scratch_units = plan.shape.scratch;
  return geometry;
}

// Returns whether a step's length is determined by its received message only.
bool has_steps_without_memory(std::span<const Plan> plans) {
  for (const Plan& plan : plans) {
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      bool memory = false, lane = false;
      for_each_operand(plan.steps[i], [&](const Operand& operand) {
        memory |= operand.is_memory();
        lane |= operand.space == Space::lane;
      });
      if (lane && !memory) return true;
    }
  }
  return false;
}

// Elements of a block: in most runs one or two per unit, in a quarter of the runs fewer than there are units.
std::uint32_t choose_elements(std::span<const Plan> plans, std::mt19937_64& random) {
  const std::uint32_t units = plans[0].shape.units;
  if (has_steps_without_memory(plans)) return 2 * units;  // Empty messages are not sent, so none may be empty.
  if (random() % 4 == 0) return 1 + static_cast<std::uint32_t>(random() % units);
  return units + static_cast<std::uint32_t>(random() % (units + 1));
}

std::string element_of_chunk(std::uint32_t element, std::uint32_t chunk) {
  return "element " + std::to_string(element) + " of piece " + std::to_string(chunk);
}

}  // namespace

Value folded(Value left, Value right) { return {left.sum + right.sum, mix(left.tree * 7 + mix(right.tree + 1) * 11)}; }
Value premultiplied(Value value) { return {value.sum * kPreMultiplier, mix(value.tree + 2)}; }
Value completed(Value value) { return {value.sum * kAverage, mix(value.tree + 3)}; }

std::uint32_t Geometry::blocks() const { return std::max(input_base + input_blocks, output_base + output_blocks); }

bool Geometry::holds(Space space, std::uint32_t unit) const {
  if (space == Space::scratch) return unit < scratch_units;
  return unit / units < (space == Space::input ? input_blocks : output_blocks);
}

Callers::Callers(std::span<const Plan> plans, const Loop& loop, std::uint64_t seed)
    : plans_(plans),
      chunks_(loop.chunks),
      ring_(loop.ring == 0 ? loop.chunks : loop.ring),
      random_(seed),
      secret_(random_()) {
  const std::uint32_t elements = choose_elements(plans, random_);
  for (Rank rank = 0; rank < plans.size(); ++rank) {
    RankMemory& state = ranks_.emplace_back();
    state.geometry = geometry_of(plans[rank], rank, elements);
    state.memory.resize(std::size_t{state.geometry.blocks()} * elements * chunks_);
    state.scratch.resize(std::size_t{state.geometry.begin(state.geometry.scratch_units)} * ring_);
    overwrite(state);
  }
}

Value& Callers::user(Rank rank, std::uint32_t chunk, Space space, std::uint32_t element) {
  RankMemory& state = ranks_[rank];
  const std::uint32_t base = space == Space::input ? state.geometry.input_base : state.geometry.output_base;
  return state.memory[(std::size_t{chunk} * state.geometry.blocks() + base) * state.geometry.elements + element];
}

Value& Callers::scratch(Rank rank, std::uint32_t chunk, std::uint32_t element) {
  return ranks_[rank].scratch[chunk % ring_ * (ranks_[rank].scratch.size() / ring_) + element];
}

std::uint32_t Callers::length_of(const Operand& memory) const {
  if (memory.peer >= ranks_.size()) return 0;
  std::uint32_t length = 0;
  for (std::uint32_t i = 0; i < memory.count; ++i) length += ranks_[memory.peer].geometry.length(memory.unit(i));
  return length;
}

void Callers::overwrite(RankMemory& state) {
  for (Value& value : state.memory) value = garbage();
  for (Value& value : state.scratch) value = garbage();
  state.as_left = state.memory;
}

std::string Callers::enter(Rank rank) {
  RankMemory& state = ranks_[rank];
  if (state.memory != state.as_left) return "its caller's memory was written between operations";
  overwrite(state);
  for (std::uint32_t chunk = 0; chunk < chunks_; ++chunk) {
    for (std::uint32_t i = 0; i < state.geometry.input_blocks * state.geometry.elements; ++i) {
      const std::uint64_t id = contribution(rank, state.operation, chunk, i);
      user(rank, chunk, Space::input, i) = {id, mix(id)};
    }
  }
  state.as_left = state.memory;
  return "";
}

std::string Callers::leave(Rank rank) {
  RankMemory& state = ranks_[rank];
  for (std::uint32_t chunk = 0; chunk < chunks_; ++chunk) {
    for (std::uint32_t i = 0; i < state.geometry.output_blocks * state.geometry.elements; ++i) {
      Value& value = user(rank, chunk, Space::output, i);
      if (value.sum != expected(rank, chunk, i)) return "wrong output in " + element_of_chunk(i, chunk);
      if (!has_bits_of_others(rank, chunk, i, value)) return "other bits than others in " + element_of_chunk(i, chunk);
      value = state.as_left[static_cast<std::size_t>(&value - state.memory.data())];
    }
  }
  if (state.memory != state.as_left) return "input was written";  // Overwrites all output: the rest is input.
  overwrite(state);
  ++state.operation;
  return "";
}

std::string Callers::at_the_end(Rank rank) const {
  return ranks_[rank].memory == ranks_[rank].as_left ? "" : "its caller's memory was written after its return";
}

std::uint64_t Callers::contribution(Rank rank, std::uint32_t operation, std::uint32_t chunk,
                                    std::uint32_t element) const {
  return mix(mix(secret_ + rank) + mix(operation * 1000ull + chunk) + element);
}

std::uint64_t Callers::expected(Rank rank, std::uint32_t chunk, std::uint32_t i) const {
  const Problem& problem = plans_[rank].problem;
  const std::uint32_t elements = ranks_[rank].geometry.elements;
  const Rank block = i / elements;
  const std::uint32_t own = rank * elements + i % elements;  // In a memory of n blocks, the block for this rank.
  const auto from = [&](Rank source, std::uint32_t element) {
    return contribution(source, ranks_[rank].operation, chunk, element);
  };
  switch (problem.collective) {
    case Collective::all_gather:
    case Collective::gather: return from(block, i % elements);
    case Collective::broadcast: return from(problem.root, i);
    case Collective::scatter: return from(problem.root, own);
    case Collective::all_to_all: return from(block, own);
    case Collective::all_reduce:
    case Collective::reduce:
    case Collective::reduce_scatter: break;
  }
  std::uint64_t sum = 0;
  for (Rank source = 0; source < problem.ranks; ++source) {
    sum += from(source, problem.collective == Collective::reduce_scatter ? own : i);
  }
  return sum * kPreMultiplier * (problem.ranks > 1 ? kAverage : 1);
}

bool Callers::has_bits_of_others(Rank rank, std::uint32_t chunk, std::uint32_t element, const Value& value) {
  if (plans_[rank].problem.collective != Collective::all_reduce) return true;
  return bits_.try_emplace({ranks_[rank].operation, chunk, element}, value.tree).first->second == value.tree;
}

}  // namespace tutti::test
