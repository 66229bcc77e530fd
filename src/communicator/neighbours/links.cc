#include "src/communicator/neighbours/links.h"

#include <algorithm>

namespace tutti {

LaneSpec DeviceLinks::spec(const LaneUse& use, Protocol protocol) const {
  LaneUse plain = use;
  plain.form = LaneForm::one_way;
  return spec_of(plain, self_, protocol, Slots::most, slots());
}

Status DeviceLinks::lay(std::vector<LaneSpec> specs, std::uint32_t channels) {
  std::sort(specs.begin(), specs.end());
  for (LaneSpec spec : specs) {
    for (std::uint32_t channel = 0; channel < channels; ++channel, ++spec.channel)
      TUTTI_CHECK_OK(neighbours_.lane(spec).status());
  }
  return {};
}

Result<LaneState*> DeviceLinks::end(const LaneSpec& spec, Rank writer, std::uint16_t tag, LaneEnd which) {
  const bool forward = writer == spec.writer && tag == spec.tag;
  auto& known = ends_[{spec, forward, which}];
  if (known == nullptr) {
    const LanePair pair = TUTTI_TRY(neighbours_.lane(spec));
    known = std::make_unique<End>();
    known->spec = spec;
    known->forward = forward;
    known->state.view = view_of(pair, forward);
    by_state_[&known->state] = known.get();
  }
  return &known->state;
}

Result<std::vector<LaneState*>> DeviceLinks::on_device(std::span<LaneState* const> ends, std::uint32_t channels) {
  struct Missing {
    End* end;
    std::uint32_t channel;
  };
  std::vector<Missing> missing;
  std::vector<LaneState> states;
  for (const LaneState* state : ends) {
    End& end = *by_state_.at(state);
    for (auto channel = static_cast<std::uint32_t>(end.by_channel.size()); channel < channels; ++channel) {
      LaneSpec spec = end.spec;
      spec.channel = static_cast<std::uint16_t>(spec.channel + channel);
      const LanePair pair = TUTTI_TRY(neighbours_.lane(spec));
      missing.push_back({&end, channel});
      states.emplace_back().view = view_of(pair, end.forward);
    }
  }
  if (!states.empty()) {
    std::byte* memory = TUTTI_TRY(neighbours_.home().take_any(states.size() * sizeof(LaneState)));
    TUTTI_CHECK_OK(neighbours_.home().device().upload(memory, std::as_bytes(std::span(states))));
    for (std::size_t i = 0; i < missing.size(); ++i)
      missing[i].end->by_channel.push_back(reinterpret_cast<LaneState*>(memory) + i);
  }
  std::vector<LaneState*> table(ends.size() * channels);
  for (std::uint32_t channel = 0; channel < channels; ++channel) {
    for (std::size_t i = 0; i < ends.size(); ++i)
      table[channel * ends.size() + i] = by_state_.at(ends[i])->by_channel[channel];
  }
  return table;
}

}  // namespace tutti
