#include "src/communicator/device/device_jobs.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "src/communicator/planning/call_numbers.h"
#include "src/communicator/planning/planning.h"

namespace tutti {
namespace {

// True if the call rounds beyond its format: by random numbers, or with error feedback.
bool uses_rounding(const PreparedDeviceCall& prepared, const RequestedRounding& requested) {
  if (prepared.entry.call.task.compression == CompressionFormat::none) return false;
  return prepared.has_residual || requested.rounding == Rounding::stochastic;
}

}  // namespace

Status DeviceJobs::provide(const PreparedDeviceCall& prepared, const RequestedRounding& requested,
                           std::size_t& roundings) {
  if (uses_rounding(prepared, requested)) TUTTI_CHECK_OK(rounding_buffers_.provide(peers_.own_memory(), ++roundings));
  return scratch(prepared.scratch_bytes + prepared.copied_bytes).status();
}

// Grows scratch memory at least twofold where the device has as much. Old scratch memory is kept for calls in progress
// and for graphs.
Result<std::byte*> DeviceJobs::scratch(std::size_t bytes) {
  if (scratch_bytes_ < bytes) {
    std::size_t wanted = std::max(bytes, 2 * scratch_bytes_);
    Result<std::byte*> grown = peers_.own_memory().allocate(wanted);
    if (!grown.ok() && wanted > bytes) grown = peers_.own_memory().allocate(wanted = bytes);
    scratch_ = TUTTI_TRY(std::move(grown));
    scratch_bytes_ = wanted;
  }
  return scratch_;
}

Result<DeviceJob> DeviceJobs::job_of(PreparedDeviceCall& prepared, const Call& call, const CommunicatorOptions& options,
                                     Signature signature) {
  DeviceJob job;
  job.launches = true;
  job.entry = prepared.entry;
  job.thread_block_bytes = prepared.thread_block_bytes;
  job.threads = prepared.threads;
  KernelCall& entry = job.entry.call;
  entry.self = {.input = const_cast<std::byte*>(call.input), .output = call.output};
  const CallWindows windows = prepared.mapped ? windows_.windows_of(call) : CallWindows{};
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
  if (limits > 0) entry.self.scratch = TUTTI_TRY(scratch(limits));
  if (prepared.copied_bytes > 0) {
    entry.input_window = kNotShown;  // Peers of calls in place access this rank's output.
    entry.self.input = entry.self.scratch + prepared.scratch_bytes;
  }
  if (prepared.ring != nullptr) entry.self.scratch = prepared.ring;
  if (prepared.copied_bytes > 0 && !prepared.has_residual) {
    job.copy_to = entry.self.input;
    job.copy_from = call.input;
    job.copy_bytes = prepared.copied_bytes;
  }
  if (uses_rounding(prepared, options.compression_rounding))
    TUTTI_CHECK_OK(bind_rounding(prepared, call, options.compression_rounding, job));
  job.by_copy_engines = prepared.by_copy_engines;
  if (prepared.by_copy_engines) add_copies(prepared, call, job);
  prepared.latest = order_.number();
  prepared.replayed = prepared.replayed || order_.is_captured();
  // Replays report no number: it would be that of the captured call, and costs a slow store to host memory.
  job.entry.watch = reports_->watch(order_.is_captured() ? 0 : order_.number(), options.timeout_ms);
  return job;
}

// A rank reads the inputs of its peers, each from another one at a time. Reads need no announcement: after a failure
// they change no memory of peers, and this rank's mappings keep what they read. The peers of a call in place read its
// input until its end, so an all-to-all receives in scratch. A peer without such an input makes another call, which
// fails.
void DeviceJobs::add_copies(const PreparedDeviceCall& prepared, const Call& call, DeviceJob& job) const {
  const Problem problem = problem_of(call, peers_.ranks());
  const std::uint64_t block_bytes = call.count * size_of(call.type);
  const std::uint64_t input_bytes = input_blocks(problem, self_) * block_bytes;
  const std::uint64_t own_block = input_blocks(problem, self_) == 1 ? 0 : self_ * block_bytes;
  const InputPlaces places = windows_.inputs_of(call);
  std::byte* const output = prepared.scratch_bytes > 0 ? job.entry.call.self.scratch : call.output;
  for (Rank i = 1; i <= problem.ranks; ++i) {
    const Rank peer = (self_ + i) % problem.ranks;
    const std::byte* input = peer == self_ ? call.input : windows_.input_of(peer, places, input_bytes);
    if (input == nullptr) continue;
    const DeviceCopy copy = {output + peer * block_bytes, input + own_block, block_bytes};
    if (copy.to != copy.from) job.copies.push_back(copy);
  }
  if (output != call.output) job.last = {call.output, output, problem.ranks * block_bytes};
}

Status DeviceJobs::bind_rounding(const PreparedDeviceCall& prepared, const Call& call,
                                 const RequestedRounding& requested, DeviceJob& job) {
  const bool dithers = requested.rounding == Rounding::stochastic;
  const CallNumbers numbers =
      numbers_of(call, self_, peers_.ranks(), prepared.record.sequence - joining_, requested.seed);
  KernelRounding rounding = {.key = numbers.key,
                             .input_key = numbers.input_key,
                             .quantization_errors = prepared.has_residual ? call.residual : nullptr,
                             .elements = numbers.elements,
                             .firsts = {numbers.first_input, numbers.first_output},
                             .dithers = dithers ? 1U : 0U};
  KernelCall& entry = job.entry.call;
  entry.rounding = TUTTI_TRY(upload_rounding(rounding, job.entry.channels));
  if (!prepared.has_residual) return {};
  job.residual = {.input = call.input,
                  .held = const_cast<std::byte*>(entry.self.input),
                  .residual = call.residual,
                  .rounding = entry.rounding,
                  .count = call.count,
                  .blocks = input_blocks(problem_of(call, peers_.ranks()), self_),
                  .compression = entry.task.compression,
                  .type = call.type};
  return {};
}

// Returns a buffer in device memory for this call, which is reused after a later call has begun. A captured call keeps
// its buffer for the lifetime of the graph, and counts its runs there per channel. Without the count, every replay
// would draw the same random numbers, and the mean of the results would be biased.
Result<const KernelRounding*> DeviceJobs::upload_rounding(KernelRounding rounding, std::uint32_t channels) {
  std::byte bytes[RoundingBuffers::kBytes] = {};
  const bool counts = order_.is_captured() && rounding.dithers != 0;
  const std::size_t used = sizeof rounding + (counts ? channels * sizeof(std::uint32_t) : 0);
  std::byte* memory = TUTTI_TRY(rounding_buffers_.take(peers_.own_memory()));
  if (counts) rounding.runs = reinterpret_cast<std::uint32_t*>(memory + sizeof rounding);
  std::memcpy(bytes, &rounding, sizeof rounding);
  TUTTI_CHECK_OK(peers_.own_memory().device().upload(memory, std::span(bytes, used)));
  if (!order_.is_captured()) {
    peers_.own_memory().retire(memory, RoundingBuffers::kBytes, order_.number());
  } else {
    TUTTI_CHECK_OK(peers_.own_memory().device().keep_for_graph(order_.stream(), rounding_buffers_.lease(memory)));
  }
  return reinterpret_cast<const KernelRounding*>(memory);
}

// ---- Buffers ----

Status RoundingBuffers::provide(RankDeviceMemory& memory, std::size_t count) {
  if (ready_.size() < count) collect();
  while (ready_.size() < count) ready_.push_back(TUTTI_TRY(memory.allocate_uncleared(kBytes)));
  return {};
}

Result<std::byte*> RoundingBuffers::take(RankDeviceMemory& memory) {
  TUTTI_CHECK_OK(provide(memory, 1));
  std::byte* buffer = ready_.back();
  ready_.pop_back();
  return buffer;
}

std::shared_ptr<void> RoundingBuffers::lease(std::byte* buffer) {
  {
    const std::lock_guard lock(lent_->mutex);
    std::vector<std::byte*>& back = lent_->back;
    if (++lent_->count > back.capacity()) back.reserve(2 * lent_->count);
  }
  return {buffer, [lent = lent_](std::byte* returned) {
            const std::lock_guard lock(lent->mutex);
            lent->back.push_back(returned);
          }};
}

void RoundingBuffers::collect() {
  const std::lock_guard lock(lent_->mutex);
  ready_.insert(ready_.end(), lent_->back.begin(), lent_->back.end());
  lent_->count -= lent_->back.size();
  lent_->back.clear();
}

}  // namespace tutti
