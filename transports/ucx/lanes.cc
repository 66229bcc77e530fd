// Lanes of an end: their slots, and the registration of this memory.
#include <algorithm>
#include <utility>

#include "transports/ucx/end.h"
#include "transports/ucx/engine.h"

namespace tutti {

UcxLanding UcxEnd::land(std::uint32_t number, const HalfLane& half) {
  const UcxEngine::Registered slots = engine_.registered(half.memory.slots);
  Reading& lane = reading_[number];
  lane.end = this;
  lane.memory = half.memory.slots;
  lane.view = half.view;
  lane.registered = slots.handle;
  lane.type = slots.type;
  lane.on_device = slots.on_device;
  for (Arrival& arrival : lane.arrivals) arrival.lane = &lane;
  next_reading_ = std::max(next_reading_, number + 1);
  arrived_.reserve(reading_.size());
  return {.on_device = slots.on_device ? 1U : 0U};
}

void UcxEnd::attach(std::uint32_t number, const HalfLane& half, const UcxLanding& landing) {
  const UcxEngine::Registered slots = engine_.registered(half.memory.slots);
  Writing& lane = writing_[number];
  lane.end = this;
  lane.number = number;
  lane.memory = half.memory.slots;
  lane.registered = slots.handle;
  lane.type = slots.type;
  lane.on_device = slots.on_device || landing.on_device != 0;
  for (Sending& sending : lane.sending) sending.lane = &lane;
  next_writing_ = std::max(next_writing_, number + 1);
  for (auto* list : {&over_, &left_, &credited_}) list->reserve(writing_.size());
}

bool UcxEnd::Reading::busy() const {
  return credit.busy || std::any_of(arrivals.begin(), arrivals.end(),
                                    [](const Arrival& arrival) { return arrival.state == Arrival::State::coming; });
}

std::vector<LaneMemory> UcxEnd::forget(std::uint32_t number, LaneEnd which) {
  std::vector<LaneMemory> freed;
  if (which == LaneEnd::writer) {
    const auto found = writing_.find(number);
    if (found == writing_.end()) return freed;
    for (auto* list : {&over_, &left_, &credited_}) std::erase(*list, &found->second);
    freed.push_back(std::move(found->second.memory));
    writing_.erase(found);
    return freed;
  }
  const auto found = reading_.find(number);
  if (found == reading_.end()) return freed;
  std::erase(arrived_, &found->second);
  found->second.forgotten = true;
  fading_.push_back(reading_.extract(found));
  std::erase_if(fading_, [&freed](auto& lane) {
    if (lane.mapped().busy()) return false;
    freed.push_back(std::move(lane.mapped().memory));
    return true;
  });
  return freed;
}

}  // namespace tutti
