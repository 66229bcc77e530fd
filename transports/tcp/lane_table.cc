#include "transports/tcp/lane_table.h"

#include <algorithm>
#include <string>

#include "src/base/pages.h"

namespace tutti {

Result<HalfLane*> LaneTable::half(std::uint32_t context, const LaneSpec& spec, LaneEnd end) {
  TUTTI_CHECK_OK(HalfLane::check(spec));
  const auto found = known_.find({context, spec});
  if (found != known_.end()) {
    if (found->second->end != end) return internal_error("one end of a lane was opened as both");
    return found->second.get();
  }
  HalfMemory memory = TUTTI_TRY(memory_for(context, spec));
  auto made = std::make_unique<HalfLane>(context, spec, end, std::move(memory));
  return known_.emplace(LaneKey(context, spec), std::move(made)).first->second.get();
}

void LaneTable::attach_memory(std::uint32_t context, LaneRegion region) { attached_[context] = {std::move(region)}; }

// The returned pointer keeps the whole region alive.
Result<HalfMemory> LaneTable::memory_for(std::uint32_t context, const LaneSpec& spec) {
  const auto found = attached_.find(context);
  if (spec.protocol == Protocol::ll && (found == attached_.end() || !found->second.region.holds_ll))
    return invalid_usage("a lane of LL to another host needs slots in device memory, which its network card reaches");
  HalfMemory half;
  if (found == attached_.end()) {
    half.control = TUTTI_TRY(allocate_(HalfLane::memory_bytes(spec)));
    return half;
  }
  Attached& attached = found->second;
  const LaneRegion& region = attached.region;
  const bool apart = region.slots != nullptr;
  const std::size_t bytes = apart ? HalfLane::kCounterBytes : HalfLane::memory_bytes(spec);
  const std::size_t slots_bytes = apart ? HalfLane::slots_bytes(spec) : 0;
  if (bytes > region.bytes - attached.used || slots_bytes > region.slots_bytes - attached.slots_used) {
    return internal_error("the memory for lanes between ranks " + std::to_string(spec.writer) + " and " +
                          std::to_string(spec.reader) + " is full: " + std::to_string(region.bytes) + " bytes, and " +
                          std::to_string(region.slots_bytes) + " for slots apart");
  }
  half.control = LaneMemory(region.memory, region.memory.get() + attached.used);
  if (apart) half.slots = LaneMemory(region.slots, region.slots.get() + attached.slots_used);
  attached.used += round_up(bytes, kPageBytes);
  attached.slots_used += round_up(slots_bytes, kPageBytes);
  return half;
}

bool LaneTable::number(HalfLane& half, std::uint32_t& number) {
  const auto found =
      std::find_if(writing_.begin(), writing_.end(), [&](const Numbered& lane) { return lane.half == &half; });
  if (found != writing_.end()) {
    number = found->number;
    return false;
  }
  number = next_writing_++;
  writing_.push_back({number, &half});
  return true;
}

Result<HalfLane*> LaneTable::accept(std::uint32_t number, std::uint32_t context, const LaneSpec& spec) {
  if (number != next_reading_) return remote_error("received a lane in the wrong order");
  TUTTI_CHECK_OK(HalfLane::check(spec));
  if (closed_there(context)) return remote_error("received a lane of a communicator that its rank has left");
  if (closed_here(context)) {
    ++next_reading_;
    return nullptr;
  }
  const auto known = known_.find({context, spec});
  if (known != known_.end() && known->second->end != LaneEnd::reader)
    return remote_error("received the address of a lane that this end writes");
  HalfLane* reading = TUTTI_TRY(half(context, spec, LaneEnd::reader));
  const auto same = [&](const Numbered& lane) { return lane.half == reading; };
  if (std::any_of(reading_.begin(), reading_.end(), same)) return remote_error("received a lane twice");
  reading_.push_back({next_reading_++, reading});
  return reading;
}

Result<HalfLane*> LaneTable::find(const Numbers& numbers, std::uint32_t number, std::uint32_t next) {
  if (number >= next) return remote_error("received a frame for an unknown lane");
  const auto found = std::lower_bound(numbers.begin(), numbers.end(), number,
                                      [](const Numbered& lane, std::uint32_t other) { return lane.number < other; });
  return found != numbers.end() && found->number == number ? found->half : nullptr;
}

void LaneTable::close(std::uint32_t context) {
  attached_.erase(context);
  Ended& ended = ended_.emplace_back();
  ended.context = context;
  const auto move_out = [&](Numbers& numbers, auto& to) {
    for (const Numbered& lane : numbers) {
      if (lane.half->context != context) continue;
      auto node = known_.extract({context, lane.half->spec});
      to.emplace_back(lane.number, std::move(node.mapped()));
    }
    std::erase_if(numbers, [&](const Numbered& lane) {
      return std::any_of(to.begin(), to.end(), [&](const auto& moved) { return moved.second.get() == lane.half; });
    });
  };
  move_out(writing_, ended.writing);
  move_out(reading_, ended.reading);
  for (auto known = known_.begin(); known != known_.end();) {
    if (known->first.first != context) {
      ++known;
      continue;
    }
    ended.unnumbered.push_back(std::move(known->second));
    known = known_.erase(known);
  }
}

bool LaneTable::closed_here(std::uint32_t context) const {
  return std::any_of(ended_.begin(), ended_.end(), [&](const Ended& ended) { return ended.context == context; });
}

void LaneTable::drop(std::uint32_t context) {
  std::erase_if(ended_, [&](const Ended& ended) { return ended.context == context; });
  closed_there_.erase(context);
}

}  // namespace tutti
