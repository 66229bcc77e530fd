#include "src/communicator/peers/device_lanes.h"

#include <algorithm>
#include <set>

namespace tutti {
namespace {

LaneSpec on_channel(LaneSpec spec, std::uint32_t channel) {
  spec.channel = static_cast<std::uint16_t>(spec.channel + channel);
  return spec;
}

}  // namespace

LaneSpec DeviceLanes::spec(const LaneUse& use, Protocol protocol) const {
  LaneUse plain = use;
  plain.form = LaneForm::one_way;
  const bool near = peers_.hosts().same_host(self_, use.peer);
  return spec_of(plain, self_, protocol, near ? kLaneSlotsInHost : Slots::max, slots_to(use.peer));
}

Status DeviceLanes::create_lanes(std::span<const std::vector<LaneSpec>> specs, std::uint32_t channels) {
  std::set<LaneSpec> wanted;
  for (std::uint32_t channel = 0; channel < channels; ++channel)
    for (const LaneSpec& spec : specs[channel % specs.size()]) wanted.insert(on_channel(spec, channel));
  for (const LaneSpec& spec : wanted) TUTTI_CHECK_OK(peers_.lane(spec).status());
  return {};
}

Result<LaneState*> DeviceLanes::end(const LaneSpec& spec, const Wanted& wanted) {
  const bool forward = wanted.writer == spec.writer && wanted.tag == spec.tag;
  auto& known = ends_[{spec, forward, wanted.which}];
  if (known == nullptr) {
    const LanePair pair = TUTTI_TRY(peers_.lane(on_channel(spec, wanted.channel)));
    known = std::make_unique<End>();
    known->spec = spec;
    known->forward = forward;
    known->view = view_of(pair, forward);
  }
  return known.get();
}

Result<std::vector<LaneState*>> DeviceLanes::upload_ends(std::span<const std::span<LaneState* const>> ends,
                                                         std::uint32_t channels) {
  struct Missing {
    End* end;
    std::uint32_t channel;
  };
  std::vector<Missing> missing;
  std::vector<LaneState> states;
  std::size_t max = 0;
  for (std::uint32_t channel = 0; channel < channels; ++channel) {
    max = std::max(max, ends[channel % ends.size()].size());
    for (LaneState* state : ends[channel % ends.size()]) {
      End& end = *static_cast<End*>(state);
      if (end.by_channel.size() <= channel) end.by_channel.resize(channel + 1);
      if (end.by_channel[channel] != nullptr) continue;
      const LanePair pair = TUTTI_TRY(peers_.lane(on_channel(end.spec, channel)));
      missing.push_back({&end, channel});
      states.emplace_back().view = view_of(pair, end.forward);
    }
  }
  if (!states.empty()) {
    std::byte* memory = TUTTI_TRY(peers_.own_memory().allocate_uncleared(states.size() * sizeof(LaneState)));
    TUTTI_CHECK_OK(peers_.own_memory().device().upload(memory, std::as_bytes(std::span(states))));
    for (std::size_t i = 0; i < missing.size(); ++i)
      missing[i].end->by_channel[missing[i].channel] = reinterpret_cast<LaneState*>(memory) + i;
  }
  std::vector<LaneState*> table(max * channels);
  for (std::uint32_t channel = 0; channel < channels; ++channel) {
    const std::span<LaneState* const> own = ends[channel % ends.size()];
    for (std::size_t i = 0; i < own.size(); ++i)
      table[channel * max + i] = static_cast<End*>(own[i])->by_channel[channel];
  }
  return table;
}

}  // namespace tutti
