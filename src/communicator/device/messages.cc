// Point-to-point messages between ranks on devices: a plan of one step each.
#include <algorithm>

#include "src/communicator/device/device_communicator.h"

namespace tutti {
namespace {

constexpr std::uint64_t kChannelBytes = 256 * 1024;

}  // namespace

// Returns the same number on both ranks.
std::uint32_t DeviceCommunicator::message_channels(const Call& call) const {
  const std::uint64_t most =
      std::clamp(peers_.thread_blocks() / 4, 1U,
                 std::min(kMaxMessageChannels, peers_.lanes().channels));  // Several peers at a time.
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(call.count * size_of(call.type) / kChannelBytes, 1, most));
}

// Drops forced choices, which do not apply to messages.
CommunicatorOptions DeviceCommunicator::message_options(const CommunicatorOptions& options) {
  CommunicatorOptions plain;
  plain.timeout_ms = options.timeout_ms;
  return plain;
}

Result<DeviceJob> DeviceCommunicator::message(const Call& call, const CommunicatorOptions& options) {
  Prepared* prepared = TUTTI_TRY(prepared_for(call, message_options(options)));
  monitor_.set_kind(call.kind);
  // The lane counts its messages, so the signature contains only size and type.
  const Signature signature = {mix(call.count * 0x9e3779b97f4a7c15ULL + static_cast<std::uint64_t>(call.type))};
  return job_of(*prepared, call, options, signature);
}

Result<std::unique_ptr<DeviceCommunicator::Prepared>> DeviceCommunicator::prepare_message(const Call& call) {
  const bool sends = call.kind == Kind::send;
  const Rank peer = call.root;
  const LaneSpec base = message_spec(sends ? rank_ : peer, sends ? peer : rank_, 0, links_.slots());
  LaneSpec spec = base;
  spec.channel = kMessageChannel;
  LaneState* end = TUTTI_TRY(
      links_.end(spec, {.writer = spec.writer, .tag = spec.tag, .which = sends ? LaneEnd::writer : LaneEnd::reader}));

  Plan plan;
  plan.shape = {.units = 1, .scratch = 0, .rounds = 1, .stages = {0}};
  plan.steps = Steps(rank_);
  if (sends) {
    plan.steps.send(input(0), peer);
  } else {
    plan.steps.recv(peer, output(0));
  }
  plan.rounds = {0, 1};
  const CompiledPlan compiled(plan, [&](const Operand&, bool) { return end; });

  auto prepared = std::make_unique<Prepared>();
  Launch launch;
  launch.channels = message_channels(call);
  launch.even_if_empty = true;
  const Choice choice = {.algorithm = "message", .chunk_bytes = base.slot_bytes, .loop = {}};
  const SlotLimits limits = {
      .algorithm = "message", .slot_bytes = base.slot_bytes, .granule_bytes = 128, .balanced = true};
  TUTTI_CHECK_OK(cut_call(call, choice, limits, 1, launch));
  prepared->entry.call.task.type = call.type;
  TUTTI_CHECK_OK(put_on_device({&compiled.program()}, launch, {}, *prepared));
  return prepared;
}

}  // namespace tutti
