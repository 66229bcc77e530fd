// From a call to a launch: choice, plan, proof, lanes, image. Done once per call key, without waiting for peers.
#include <algorithm>

#include "src/base/atomic.h"
#include "src/base/pages.h"
#include "src/communicator/device/device_communicator.h"
#include "src/communicator/device/turns.h"
#include "src/executor/straighten.h"
#include "src/executor/thread_block/image.h"
#include "src/executor/thread_block/run_call.h"

namespace tutti {
namespace {

constexpr std::size_t kLanesBytes = 5 << 20;  // To one peer, for both protocols.
constexpr std::size_t kMaxReserved = 40 << 20;
constexpr std::size_t kAutotunersBytes = 4 << 20;  // For images of candidates that autotuning tests.

// Address of a word of host memory, as thread blocks use it.
template <typename Word>
Word* as_mapped(const HostMemory& memory, Word* word) {
  return reinterpret_cast<Word*>(memory.device + (reinterpret_cast<const std::byte*>(word) - memory.host));
}

}  // namespace

Status DeviceCommunicator::make_events() {
  latest_ = TUTTI_TRY(device().make_event());
  captured_ = TUTTI_TRY(device().make_event());
  joins_ = TUTTI_TRY(device().make_event());
  return {};
}

// Prepares a communicator whose ranks have met, and reserves memory for most lanes. No effect if it is already
// prepared.
Status DeviceCommunicator::settle() {
  if (settled_) return {};
  Device& device = this->device();
  std::size_t reserved = 0;
  if (peers_.all_in_process() && ranks_ > 1) reserved = std::min(peers_.writers_at_home() * kLanesBytes, kMaxReserved);
  if (autotuning_ != nullptr) reserved += kAutotunersBytes;
  if (reserved > 0) TUTTI_CHECK_OK(home().reserve(reserved));
  const HostMemory board_memory = TUTTI_TRY(
      device.map_host(board().segment().data(), round_up(Board::bytes_for_gpus(board().ranks()), mapped_page_bytes())));
  auto reported = device.allocate_host(sizeof(KernelProgress));
  const bool has_progress = reported.ok();
  Status ready = has_progress ? find_place(board_memory) : std::move(reported).status();
  if (!ready.ok()) {
    if (has_progress) device.free_host(reported.value());
    device.unmap_host(board_memory);
    return ready;
  }
  board_memory_ = board_memory;
  reported_ = reported.value();
  settled_ = true;
  if (peers_.network()) TUTTI_CHECK_OK(start_proxy());
  if (peers_.in_turns()) turns_ = TUTTI_TRY(Turns::make(home().shared_device(), *control_));
  return {};
}

// Allocates one block of memory for the address exchange, followed by the tables to which it points.
Status DeviceCommunicator::find_place(const HostMemory& board_memory) {
  static_assert(kMaxRemoteAccesses == kMaxChannels);
  std::vector<AddressRecord*> records;
  for (Rank rank = 0; rank < ranks_; ++rank) records.push_back(TUTTI_TRY(peers_.records(rank)));
  const std::size_t records_at = round_up(sizeof(AddressExchange), 16);
  const std::size_t counts_at = records_at + round_up(records.size() * sizeof(AddressRecord*), 16);
  const std::size_t windows_at = counts_at + kMaxChannels * sizeof(std::uint64_t);
  std::byte* memory = TUTTI_TRY(home().take(windows_at + std::size_t{kMaxWindows} * ranks_ * sizeof(WindowPart)));
  auto* windows = reinterpret_cast<WindowPart*>(memory + windows_at);
  const AddressExchange place = {.records = reinterpret_cast<AddressRecord* const*>(memory + records_at),
                                 .counts = reinterpret_cast<std::uint64_t*>(memory + counts_at),
                                 .windows = windows,
                                 .remote_accesses = as_mapped(board_memory, board().entry(rank_).thread_block_accesses),
                                 .failed = as_mapped(board_memory, board().failed_word())};
  TUTTI_CHECK_OK(device().upload(memory, std::as_bytes(std::span(&place, 1))));
  TUTTI_CHECK_OK(device().upload(memory + records_at, std::as_bytes(std::span(records))));
  place_ = reinterpret_cast<const AddressExchange*>(memory);
  const std::vector<WindowPart> addresses(peers_.on_one_device() ? ranks_ : 0, kWholeMemory);
  TUTTI_CHECK_OK(device().upload(memory + windows_at, std::as_bytes(std::span(addresses))));
  windows_.use(windows);
  return {};
}

Status check_alignment(const Call& call) {
  const std::size_t element = size_of(call.type);
  const auto input = reinterpret_cast<std::uintptr_t>(call.input);
  const auto output = reinterpret_cast<std::uintptr_t>(call.output);
  if (input % element == 0 && output % element == 0) return {};
  return invalid_argument(std::string(input % element != 0 ? "send" : "recv") + " is not aligned to the " +
                          std::to_string(element) + " bytes of an element, as a GPU needs it");
}

bool DeviceCommunicator::only_copies(const Call& call) const {
  return call.kind == Kind::collective && ranks_ == 1 && call.reduction != Reduction::pre_mul_sum;
}

Status DeviceCommunicator::get_ready(const Call& call, const CommunicatorOptions& options, std::size_t& roundings) {
  TUTTI_CHECK_OK(check_alignment(call));
  const bool message = call.kind != Kind::collective;
  if (only_copies(call) || (call.count == 0 && !message)) return {};
  if (message && call.root == rank_ && peers_.thread_blocks() == 1) {
    return unsupported("rank " + std::to_string(rank_) + " cannot send to itself: so many ranks share " +
                       device().traits().name + " that it can only do one thing at a time there");
  }
  TUTTI_CHECK_OK(settle());
  if (turns_ != nullptr) TUTTI_CHECK_OK(turns_->start());
  auto filled = message ? filled_slot(call, message_options(options)) : filled_slot(call, options);
  std::unique_ptr<Prepared>& slot = *TUTTI_TRY(std::move(filled));
  if (slot->tuned != nullptr) autotuning_->decide(*slot->tuned, call);
  const Prepared* prepared = TUTTI_TRY(prepared_in(slot, call, options));
  if (uses_rounding(*prepared, options.compression_rounding))
    TUTTI_CHECK_OK(rounding_chunks_.provide(home(), ++roundings));
  return scratch(prepared->scratch_bytes + prepared->copied_bytes).status();
}

Result<DeviceJob> DeviceCommunicator::collective(const Call& call, const CommunicatorOptions& options) {
  CallRecord alone = record_of(call, options);
  DeviceJob job;
  Prepared* prepared = nullptr;
  if (call.count > 0 && only_copies(call)) {
    job.copy_to = call.input == call.output ? nullptr : call.output;
    job.copy_from = call.input;
    job.copy_bytes = call.count * size_of(call.type);
  } else if (call.count > 0) {
    prepared = TUTTI_TRY(prepared_for(call, options));
    make_tuned(call, options);
  }
  CallRecord& record = prepared == nullptr ? alone : prepared->record;
  note_windows(call, record);
  announce(record);
  messages_ = false;
  TUTTI_CHECK_OK(check_windows(record));
  if (prepared != nullptr && prepared->mapped) ++mapped_calls_;
  const bool rounds = prepared != nullptr && prepared->entry.call.task.compression != CompressionFormat::none;
  if (rounds) compression_counter_.add(prepared->carried);
  const LastRun* ran = nullptr;
  if (prepared != nullptr)
    ran =
        options.compression_rounding.rounding == Rounding::nearest ? &prepared->plan->ran : &prepared->plan->at_random;
  last_run_.store(ran, std::memory_order_release);
  return prepared == nullptr ? job : job_of(*prepared, call, options, signature_of(record));
}

DeviceCommunicator::CallKey DeviceCommunicator::key_of(const Call& call, const CommunicatorOptions& options) const {
  CallKey key = {.count = call.count,
                 .shape = shape_of(call) + static_cast<std::uint64_t>(call.kind),
                 .forced = options.forced,
                 .in_windows = windows_of(call).both(),
                 .has_residual = call.residual != nullptr};
  key.in_place = call.kind == Kind::collective && call.output - call.input == in_place_distance(call, ranks_, rank_);
  return key;
}

std::unique_ptr<DeviceCommunicator::Prepared>& DeviceCommunicator::slot_of(const CallKey& key) {
  const std::uint64_t manner = (key.in_place ? 1 : 0) + (key.in_windows ? 2 : 0) + (key.has_residual ? 4 : 0);
  return calls_[mix(key.count * 31 + key.shape * 7 + manner + key.forced) % calls_.size()];
}

Result<std::unique_ptr<DeviceCommunicator::Prepared>*> DeviceCommunicator::filled_slot(
    const Call& call, const CommunicatorOptions& options) {
  home().done_before(load_acquire(&reported().begun));
  const CallKey key = key_of(call, options);
  std::unique_ptr<Prepared>& slot = slot_of(key);
  if (slot != nullptr && slot->key == key) return &slot;
  auto fresh = TUTTI_TRY(call.kind != Kind::collective ? prepare_message(call)
                         : autotunes(call, options)    ? prepare_autotuning(call, options)
                                                       : prepare(call, options, nullptr));
  fresh->key = key;
  if (slot != nullptr) retire(std::move(slot));
  slot = std::move(fresh);
  if (autotuning_ != nullptr && call.kind == Kind::collective) readied_.push_back(&slot);
  return &slot;
}

Result<DeviceCommunicator::Prepared*> DeviceCommunicator::prepared_for(const Call& call,
                                                                       const CommunicatorOptions& options) {
  std::unique_ptr<Prepared>& slot = *TUTTI_TRY(filled_slot(call, options));
  return prepared_in(slot, call, options);
}

Result<DeviceCommunicator::Prepared*> DeviceCommunicator::prepared_in(std::unique_ptr<Prepared>& slot, const Call& call,
                                                                      const CommunicatorOptions& options) {
  const DeviceAutotuning::Turn* turn = autotuning_ == nullptr ? nullptr : autotuning_->decided(call);
  return turn == nullptr ? slot.get() : tried(slot, call, options, *turn);
}

// Prepared state that a graph replays is kept until the communicator ends.
void DeviceCommunicator::retire(std::unique_ptr<Prepared> prepared) {
  for (auto& [candidate, tried] : prepared->tried) retire(std::move(tried));
  if (prepared->replayed) {
    kept_.push_back(std::move(prepared));
    return;
  }
  home().retire(prepared->memory, prepared->memory_bytes, prepared->latest);
  home().retire(prepared->workspace, prepared->workspace_bytes, prepared->latest);
}

Result<std::unique_ptr<DeviceCommunicator::Prepared>> DeviceCommunicator::prepare(const Call& call,
                                                                                  const CommunicatorOptions& options,
                                                                                  const Choice* way) {
  auto prepared = std::make_unique<Prepared>();
  prepared->record = record_of(call, options);
  Problem problem = TUTTI_TRY(problem_for(call, options));
  const std::uint64_t block_bytes = call.count * size_of(call.type);
  const Query query = TUTTI_TRY(query_of(call, problem, options));
  Choice choice = TUTTI_TRY(way == nullptr ? choose_plan(call, query) : choose_like(*way, query));
  const bool advised = TUTTI_TRY(advice_.apply(query, choice, prepared->record));
  if (advised) limit_channels(query, choice);
  const Algorithm* algorithm = TUTTI_TRY(chosen_algorithm(choice, problem, {rank_mapping_, peers_.network()}));
  prepared->mapped = choice.mapped;
  problem.in_place = call.output - call.input == in_place_distance(call, ranks_, rank_);
  prepared->corrects = choice.compression != CompressionFormat::none && call.residual != nullptr;
  const bool apart = prepared->corrects && input_blocks(problem, rank_) != output_blocks(problem, rank_);
  const bool copies_input = problem.in_place && (apart || !algorithm->supports(problem));
  if (copies_input) problem.in_place = false;
  if (copies_input || (prepared->corrects && !problem.in_place))
    prepared->copied_bytes = input_blocks(problem, rank_) * block_bytes;
  ConnectedPlan* plan =
      TUTTI_TRY(connected_plan({problem, algorithm, choice.protocol,
                                message_bytes(query, choice.compression) > choice.chunk_bytes, choice.compression},
                               choice));
  prepared->plan = plan;
  TUTTI_CHECK_OK(links_.lay(plan->specs, choice.channels));
  Launch launch;
  launch.channels = choice.channels;
  TUTTI_CHECK_OK(cut_call(call, choice, plan->limits, ranks_, launch, choice.compression));
  prepared->scratch_bytes = plan->scratch_units == 0
                                ? 0
                                : round_up((plan->scratch_units / plan->limits.units + 1) * block_bytes, kPackGranule);
  FoldTask& task = prepared->entry.call.task;
  task.type = call.type;
  task.reduction = reduces(call.collective) ? call.reduction : Reduction::sum;
  task.compression = choice.compression;
  task.ranks = ranks_;
  const bool copies = call.reduction != Reduction::avg && call.reduction != Reduction::pre_mul_sum;
  TUTTI_CHECK_OK(put_on_device(plan->programs(), launch,
                               {choice.mapped, choice.mapped ? Protocol::simple : choice.protocol, copies}, *prepared));
  if (launch.cut.group > 1) prepared->carried = carried_by(plan->programs(), launch);
  trace_choice(rank_, prepared->record, choice, nullptr);
  return prepared;
}

Status DeviceCommunicator::put_on_device(const std::vector<const Program*>& programs, const Launch& given,
                                         Manner manner, Prepared& prepared) {
  Launch launch = given;
  std::vector<RankBuffers> peers(ranks_);  // Only their addresses matter.
  launch.peers = peers.data();
  // Only lanes with LL or LL128 are received in words, at most one slot at a time.
  const std::size_t stage_bytes = is_small(manner.protocol) ? slot_data(links_.slots(), manner.protocol) : 0;
  std::vector<std::vector<std::byte>> images;
  std::vector<std::span<LaneState* const>> ends_of;
  for (const Program* program : programs) {
    launch.straight = {};
    const StraightProgram straight = straighten(*program, launch, {.copies = manner.copies});
    launch.straight = straight.view();
    images.push_back(make_image(*program, launch, straight, ranks_, manner.meets, stage_bytes));
    const auto& image = *reinterpret_cast<const Image*>(images.back().data());
    ends_of.push_back({program->lanes, image.lane_count});
  }
  std::vector<std::byte> bytes = join_images(std::move(images));
  const std::size_t images_bytes = bytes.size();
  std::uint32_t thread_block_bytes = 0;
  for (std::size_t at = 0; at < images_bytes; at += images_bytes / programs.size())
    thread_block_bytes =
        std::max(thread_block_bytes, ChannelLayout(*reinterpret_cast<const Image*>(bytes.data() + at)).bytes);
  const std::vector<LaneState*> ends = TUTTI_TRY(links_.on_device(ends_of, launch.channels));
  const auto* table = reinterpret_cast<const std::byte*>(ends.data());
  bytes.insert(bytes.end(), table, table + ends.size() * sizeof(LaneState*));
  prepared.memory_bytes = bytes.size();
  prepared.memory = TUTTI_TRY(home().take_any(bytes.size()));
  TUTTI_CHECK_OK(device().upload(prepared.memory, bytes));
  BatchCall& entry = prepared.entry;
  entry.channels = launch.channels;
  entry.call.image = prepared.memory;
  entry.call.images = static_cast<std::uint32_t>(programs.size());
  entry.call.ends = reinterpret_cast<LaneState* const*>(prepared.memory + images_bytes);
  if (launch.cut.group == 1) entry.call.exchange = place_;
  entry.call.rank = rank_;
  prepared.thread_block_bytes = thread_block_bytes;
  if (prepared.thread_block_bytes <= device().traits().thread_block_bytes) return {};
  prepared.workspace_bytes = std::size_t{launch.channels} * prepared.thread_block_bytes;
  prepared.workspace = TUTTI_TRY(home().take_any(prepared.workspace_bytes));
  entry.call.workspace = prepared.workspace;
  entry.workspace_bytes = std::exchange(prepared.thread_block_bytes, 0);
  return {};
}

// Grows scratch memory at least twofold. Old scratch memory is kept for calls in progress and for graphs.
Result<std::byte*> DeviceCommunicator::scratch(std::size_t bytes) {
  if (scratch_bytes_ < bytes) {
    const std::size_t wanted = std::max(bytes, 2 * scratch_bytes_);
    scratch_ = TUTTI_TRY(home().take(wanted));
    scratch_bytes_ = wanted;
  }
  return scratch_;
}

Result<DeviceJob> DeviceCommunicator::job_of(Prepared& prepared, const Call& call, const CommunicatorOptions& options,
                                             Signature signature) {
  DeviceJob job;
  job.launches = true;
  job.entry = prepared.entry;
  job.thread_block_bytes = prepared.thread_block_bytes;
  KernelCall& entry = job.entry.call;
  entry.self = {const_cast<std::byte*>(call.input), call.output};
  const CallWindows windows = prepared.mapped ? windows_of(call) : CallWindows{};
  entry.input_window = static_cast<std::uint16_t>(windows.input);
  entry.output_window = static_cast<std::uint16_t>(windows.output);
  entry.signature = signature;
  entry.task.scale = call.scalar;
  entry.task.integer_scale = call.integer_scalar;
  if (call.factor != nullptr) {
    entry.task.scale_in_memory = 1;
    entry.task.integer_scale = reinterpret_cast<std::int64_t>(call.factor);
  }
  const std::size_t limits = prepared.scratch_bytes + prepared.copied_bytes;
  if (limits > 0) entry.scratch = TUTTI_TRY(scratch(limits));
  if (prepared.copied_bytes > 0) {
    entry.input_window = kNotShown;  // Peers of calls in place access this rank's output.
    entry.self.input = entry.scratch + prepared.scratch_bytes;
  }
  if (prepared.copied_bytes > 0 && !prepared.corrects) {
    job.copy_to = entry.self.input;
    job.copy_from = call.input;
    job.copy_bytes = prepared.copied_bytes;
  }
  if (uses_rounding(prepared, options.compression_rounding))
    TUTTI_CHECK_OK(bind_rounding(prepared, call, options.compression_rounding, job));
  prepared.latest = number_;
  prepared.replayed = prepared.replayed || capture_ != 0;
  KernelWatch& watch = job.entry.watch;
  watch.failed = as_mapped(board_memory_, board().failed_word());
  watch.timeout_ns = options.timeout_ms <= 0 ? 0 : static_cast<std::uint64_t>(options.timeout_ms) * 1'000'000;
  watch.reported = reinterpret_cast<KernelProgress*>(reported_.device);
  watch.number = number_;
  return job;
}

}  // namespace tutti
