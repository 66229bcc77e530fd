#include "src/communicator/device/call_preparer.h"

#include <algorithm>
#include <utility>

#include "src/base/log.h"
#include "src/base/pages.h"
#include "src/executor/straighten.h"
#include "src/executor/thread_block/image.h"

namespace tutti {
namespace {

constexpr std::uint64_t kBytesPerMessageChannel = 256 * 1024;
// With more than kMaxLargeBlocks channels in the staging ring, thread blocks have at most kSmallBlockThreads threads,
// so that two fit a multiprocessor.
constexpr std::uint32_t kMaxLargeBlocks = 24, kSmallBlockThreads = 256;

}  // namespace

DeviceCallPreparer::DeviceCallPreparer(const Communicator& control, PeerSet& peers, const DeviceWindows& windows)
    : self_(control.rank()),
      ranks_(control.ranks()),
      peers_(peers),
      windows_(windows),
      chooser_(peers, windows),
      planner_(
          self_, peers.hosts(), control.options().tuner_plugin,
          [this](const Call& call, const CommunicatorOptions& options) { return chooser_.query_for(call, options); }),
      lanes_(self_, peers),
      plans_(self_, peers, chooser_, lanes_),
      autotuning_(make_autotuning(control, peers, chooser_)) {}

CallKey DeviceCallPreparer::key_of(const Call& call, const CommunicatorOptions& options) const {
  CallKey key = {.count = call.count,
                 .shape = own_shape_of(call),
                 .agreement_hash = options.agreement_hash,
                 .in_windows = windows_.windows_of(call).both()};
  key.by_switches = key.in_windows && windows_.all_multicast();
  key.by_copy_engines = by_copy_engines(call, options);
  key.in_place = call.kind == Kind::collective && call.output - call.input == in_place_distance(call, ranks_, self_);
  return key;
}

// ---- Collectives ----

Result<DeviceAutotuning::Class*> DeviceCallPreparer::class_of(const Call& call, const CommunicatorOptions& options) {
  DeviceAutotuning::Class* const untuned = nullptr;
  if (autotuning_ == nullptr || !is_tunable(call, options, ranks_) || by_copy_engines(call, options)) return untuned;
  const Query query = TUTTI_TRY(chooser_.query_for(call, options));
  std::vector<Candidate> candidates = TUTTI_TRY(chooser_.candidates_to_tune(query));
  return candidates.empty() ? untuned : &autotuning_->class_of(query, std::move(candidates));
}

Result<std::unique_ptr<PreparedDeviceCall>> DeviceCallPreparer::prepare_trial(const Call& call,
                                                                              const CommunicatorOptions& options,
                                                                              const Class& tuned,
                                                                              std::size_t candidate) {
  const std::vector<Candidate>& candidates = tuned.tuning.candidates;
  auto made = prepare_collective(call, options, &candidates[candidate].choice);
  if (made.ok()) return made;
  Status why = std::move(made).status();
  if (why.code() != Code::unsupported || candidate == 0) return why;
  return prepare_collective(call, options, &candidates.front().choice);
}

Result<std::unique_ptr<PreparedDeviceCall>> DeviceCallPreparer::prepare(const Call& call,
                                                                        const CommunicatorOptions& options) {
  if (call.kind != Kind::collective) return prepare_message(call);
  if (by_copy_engines(call, options)) return prepare_for_copy_engines(call, options);
  if (requests_copy_engines(call, options)) log_without_copy_engines(call, options);
  return prepare_collective(call, options, nullptr);
}

// Graphs may replay a captured call, so its device memory is not reused.
void DeviceCallPreparer::retire(std::unique_ptr<PreparedDeviceCall> prepared) {
  if (prepared->replayed) return;
  peers_.own_memory().retire(prepared->memory, prepared->memory_bytes, prepared->latest);
  peers_.own_memory().retire(prepared->workspace, prepared->workspace_bytes, prepared->latest);
}

Result<std::unique_ptr<PreparedDeviceCall>> DeviceCallPreparer::prepare_collective(const Call& call,
                                                                                   const CommunicatorOptions& options,
                                                                                   const Choice* like) {
  const ChosenCall chosen = TUTTI_TRY(planner_.choose(call, options, like));
  const PlannedCall planned = TUTTI_TRY(planner_.plan(call, chosen));
  const Choice& choice = chosen.choice;
  const DevicePlan* plan = TUTTI_TRY(plans_.connect(planned.key, choice));
  auto prepared = std::make_unique<PreparedDeviceCall>(plan->runs);
  prepared->record = chosen.record;
  prepared->mapped = choice.mapped;
  prepared->has_residual = planned.has_residual;
  const std::uint64_t block_bytes = call.count * size_of(call.type);
  if (planned.copies_input || (planned.has_residual && !planned.in_place))
    prepared->copied_bytes = input_blocks(planned.key.problem, self_) * block_bytes;
  TUTTI_CHECK_OK(lanes_.create_lanes(plan->specs, choice.channels));
  Launch launch;
  launch.channels = choice.channels;
  TUTTI_CHECK_OK(cut_call(call, choice, plan->limits, ranks_, launch, choice.compression));
  if (choice.loop.ring > 0) prepared->ring = TUTTI_TRY(peers_.ring(self_));
  prepared->scratch_bytes = plan->scratch_units == 0 || choice.loop.ring > 0
                                ? 0
                                : round_up((plan->scratch_units / plan->limits.units + 1) * block_bytes, kPackGranule);
  FoldTask& task = prepared->entry.call.task;
  task.type = call.type;
  task.reduction = reduces(call.collective) ? call.reduction : Reduction::sum;
  task.compression = choice.compression;
  task.ranks = ranks_;
  const bool divides = call.reduction == Reduction::avg;
  const bool copies = !divides && call.reduction != Reduction::pre_mul_sum;
  const Protocol protocol = choice.mapped ? Protocol::simple : choice.protocol;
  TUTTI_CHECK_OK(put_on_device(plan->programs(), launch, {choice.mapped, protocol, copies, divides, plan->joins_rounds},
                               *prepared));
  if (choice.staged && choice.channels > kMaxLargeBlocks)
    prepared->threads = std::min(prepared->threads, kSmallBlockThreads);
  if (launch.cut.group > 1) prepared->carried = bytes_sent(plan->programs(), launch);
  trace_choice(self_, prepared->record, choice, nullptr);
  return prepared;
}

// One thread block with a thread for each peer runs an empty program: it only exchanges addresses, which awaits all
// ranks. The exchange has the time limit, the reports and the end after failures that all calls in windows have.
Result<std::unique_ptr<PreparedDeviceCall>> DeviceCallPreparer::prepare_for_copy_engines(
    const Call& call, const CommunicatorOptions& options) {
  static constexpr LastRun kRun = {.algorithm = kCopyEngines.data()};
  static constexpr ReportedRuns kRuns = {kRun, kRun};
  auto prepared = std::make_unique<PreparedDeviceCall>(kRuns);
  prepared->by_copy_engines = prepared->mapped = true;
  prepared->record = record_of(call, options);
  prepared->record.by_copy_engines = 1;
  const bool in_place = call.output == call.input;
  if (in_place && call.collective == Collective::all_to_all)
    prepared->scratch_bytes = ranks_ * call.count * size_of(call.type);
  const Program nothing;
  TUTTI_CHECK_OK(put_on_device({&nothing}, Launch(), {.accesses_peers = true}, *prepared));
  prepared->threads = ranks_;
  log(LogLevel::trace, "rank %u, new call %s: by copy engines", self_, describe(prepared->record).c_str());
  return prepared;
}

void DeviceCallPreparer::log_without_copy_engines(const Call& call, const CommunicatorOptions& options) {
  if (std::exchange(logged_without_copy_engines_, true)) return;
  log(LogLevel::info, "rank %u: %s does not use the requested copy engines: %s", self_,
      describe(record_of(call, options)).c_str(), std::string(chooser_.against_copy_engines(call, options)).c_str());
}

Status DeviceCallPreparer::put_on_device(const std::vector<const Program*>& programs, const Launch& given,
                                         Execution execution, PreparedDeviceCall& prepared) {
  Launch launch = given;
  std::vector<RankBuffers> peers(ranks_ + 1);  // Only their addresses matter.
  launch.peers = peers.data();
  // Only lanes with LL or LL128 are received in words, at most one slot at a time.
  const std::size_t stage_bytes =
      has_inline_flags(execution.protocol) ? slot_data(peers_.lanes().slots, execution.protocol) : 0;
  std::vector<std::vector<std::byte>> images;
  std::vector<std::span<LaneState* const>> ends_of;
  for (const Program* program : programs) {
    launch.straight = {};
    const StraightProgram straight = straighten(
        *program, launch,
        {.copies = execution.copies, .divides = execution.divides, .together = true, .rounds = execution.joins_rounds});
    launch.straight = straight.view();
    images.push_back(make_image(*program, launch, straight, ranks_, execution.accesses_peers, stage_bytes));
    const auto& image = *reinterpret_cast<const Image*>(images.back().data());
    prepared.threads = std::max(prepared.threads, busy_threads(launch, straight));
    ends_of.push_back({program->lanes, image.lane_count});
  }
  std::vector<std::byte> bytes = join_images(std::move(images));
  const std::size_t images_bytes = bytes.size();
  std::uint32_t thread_block_bytes = 0;
  bool accesses_scratch = false, ll = true;
  for (std::size_t at = 0; at < images_bytes; at += images_bytes / programs.size()) {
    const auto& image = *reinterpret_cast<const Image*>(bytes.data() + at);
    thread_block_bytes = std::max(thread_block_bytes, ChannelLayout(image).bytes);
    accesses_scratch = accesses_scratch || image.accesses_scratch != 0;
    ll = ll && image.ll != Image::kNotLl;
  }
  const std::vector<LaneState*> ends = TUTTI_TRY(lanes_.upload_ends(ends_of, launch.channels));
  const auto* table = reinterpret_cast<const std::byte*>(ends.data());
  bytes.insert(bytes.end(), table, table + ends.size() * sizeof(LaneState*));
  prepared.memory_bytes = bytes.size();
  prepared.memory = TUTTI_TRY(peers_.own_memory().allocate_uncleared(bytes.size()));
  TUTTI_CHECK_OK(peers_.own_memory().device().upload(prepared.memory, bytes));
  BatchCall& entry = prepared.entry;
  entry.channels = launch.channels;
  entry.call.image = prepared.memory;
  entry.call.images = static_cast<std::uint16_t>(programs.size());
  entry.call.image_bytes = static_cast<std::uint32_t>(images_bytes / programs.size());
  entry.call.lanes = static_cast<std::uint32_t>(ends.size() / launch.channels);
  entry.call.accesses_peers = execution.accesses_peers ? 1 : 0;
  entry.call.ll = ll ? 1 : 0;
  if (execution.accesses_peers || accesses_scratch) entry.call.exchange = exchange_;
  entry.call.rank = self_;
  prepared.thread_block_bytes = thread_block_bytes;
  if (prepared.thread_block_bytes <= peers_.own_memory().device().traits().thread_block_bytes) return {};
  prepared.workspace_bytes = std::size_t{launch.channels} * prepared.thread_block_bytes;
  prepared.workspace = TUTTI_TRY(peers_.own_memory().allocate_uncleared(prepared.workspace_bytes));
  entry.call.workspace = prepared.workspace;
  entry.workspace_bytes = std::exchange(prepared.thread_block_bytes, 0);
  return {};
}

// ---- Messages ----

std::uint32_t DeviceCallPreparer::message_channels(const Call& call) const {
  const std::uint64_t max = std::clamp(peers_.thread_blocks() / 4, 1U,
                                       std::min({kMaxMessageChannels, peers_.lanes().channels_to_all(),
                                                 peers_.max_channels()}));  // Several peers at a time.
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(call.count * size_of(call.type) / kBytesPerMessageChannel, 1, max));
}

Result<std::unique_ptr<PreparedDeviceCall>> DeviceCallPreparer::prepare_message(const Call& call) {
  const bool sends = call.kind == Kind::send;
  const Rank peer = call.root;
  const LaneSpec base = message_spec(sends ? self_ : peer, sends ? peer : self_, 0, lanes_.slots_to(peer));
  LaneSpec spec = base;
  spec.channel = kMessageChannel;
  LaneState* end = TUTTI_TRY(
      lanes_.end(spec, {.writer = spec.writer, .tag = spec.tag, .which = sends ? LaneEnd::writer : LaneEnd::reader}));
  const CompiledPlan compiled(message_plan(call, self_), [&](const Operand&, bool) { return end; });

  static constexpr ReportedRuns kNone{};
  auto prepared = std::make_unique<PreparedDeviceCall>(kNone);
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
