// Calls whose buffers every rank can see: plans that read and write the peers' memory in place, because it is mapped
// here, or because the kernel copies from and to it.
//
// A rank that could go mapped says where its buffers are and waits for what the others say; a rank that could not
// says so and does not wait. All see the same records, so all that look decide alike.
#include <cerrno>
#include <cstring>
#include <string>

#include "src/base/atomic.h"
#include "src/base/config.h"
#include "src/base/log.h"
#include "src/communicator/host_communicator.h"
#include "src/executor/cpu/foreign.h"

namespace tutti {
namespace {

enum class Shown : std::uint8_t { hidden, mapped, foreign };

// Of all buffers of a rank together.
Shown shown_by(const CallRecord& record) {
  if (record.input.region == kHiddenBuffer || record.output.region == kHiddenBuffer) return Shown::hidden;
  const bool foreign = record.input.region == kForeignAddress || record.output.region == kForeignAddress;
  return foreign ? Shown::foreign : Shown::mapped;
}

BufferReference foreign(const std::byte* memory, std::uint64_t bytes) {
  return {bytes == 0 ? kNoBuffer : kForeignAddress, reinterpret_cast<std::uint64_t>(memory)};
}

}  // namespace

// Passes a region on before its first use.
BufferReference HostCommunicator::refer(const std::byte* memory, std::uint64_t bytes) {
  if (bytes == 0) return {kNoBuffer, 0};
  if (one_process_) return {kOwnAddressSpace, reinterpret_cast<std::uint64_t>(memory)};
  const auto found = Regions::of_process().find(memory, bytes);
  if (!found) return {};
  if (!passed_regions_.pass(found->region)) return {};  // This call goes through lanes.
  return *found;
}

void HostCommunicator::show_buffers(Prepared& prepared, const Call& call) {
  const std::uint64_t block_bytes = call.count * size_of(call.type);
  const Problem& problem = prepared.plan->key.problem;
  passed_regions_.withdraw();
  const std::uint64_t input_bytes = input_blocks(problem, rank_) * block_bytes;
  const std::uint64_t output_bytes = output_blocks(problem, rank_) * block_bytes;
  prepared.record.input = refer(call.input, input_bytes);
  prepared.record.output = refer(call.output, output_bytes);
  if (prepared.foreign_too && shown_by(prepared.record) == Shown::hidden && reaches_all()) {
    prepared.record.input = foreign(call.input, input_bytes);
    prepared.record.output = foreign(call.output, output_bytes);
  }
  std::uint32_t& shown = board_.entry(rank_).region_news;
  if (load_relaxed(&shown) != passed_regions_.messages()) store_release(&shown, passed_regions_.messages());
}

// Asked of the system once: it may forbid it (Yama, seccomp), and the process ids of another container are not ours.
bool HostCommunicator::reaches_all() {
  if (reach_ != Reach::unknown) return reach_ == Reach::all;
  if (!config().single_copy || one_process_) {
    reach_ = Reach::some;
    return false;
  }
  std::vector<std::int32_t> processes(ranks_);
  for (Rank peer = 0; peer < ranks_; ++peer) {
    if (!board_.is_introduced(peer)) return false;  // Next time.
    const BoardEntry& entry = board_.entry(peer);
    processes[peer] = entry.process;
    std::uint64_t token = 0;
    const auto* address = reinterpret_cast<const std::byte*>(entry.token_address);
    const int error = copy_from_process(entry.process, reinterpret_cast<std::byte*>(&token), address, sizeof token);
    if (error == 0 && token == entry.token && token != 0) continue;
    log(LogLevel::info, "large calls take two copies: rank %u may not copy from the memory of rank %u: %s", rank_, peer,
        error == 0 ? "its process id means another process here" : std::strerror(error));
    reach_ = Reach::some;
    return false;
  }
  processes_ = std::move(processes);
  reach_ = Reach::all;
  return true;
}

// What peers have passed is mapped, and what they have withdrawn is not, even where this call does not look at it.
Status HostCommunicator::hear_of_regions() {
  for (Rank peer = 0; peer < ranks_; ++peer) {
    if (regions_.has_news(peer, load_acquire(&board_.entry(peer).region_news))) TUTTI_CHECK_OK(links_.collect(peer));
  }
  return {};
}

// Whether all ranks show their buffers; peer_memory_ then says where they are here.
Result<HostCommunicator::Sight> HostCommunicator::see_buffers(const Prepared& prepared, Rank& awaited) {
  if (!one_process_) TUTTI_CHECK_OK(hear_of_regions());
  const Shown kind = shown_by(prepared.record);
  if (kind == Shown::hidden) return Sight::hidden;
  bool alike = true;
  for (Rank peer = 0; peer < ranks_; ++peer) {
    const auto record = board_.call(peer, prepared.record.sequence);
    if (!record) {
      // Gone past this call: it did not wait for us, so its buffers were private.
      if (board_.last(peer) > prepared.record.sequence) return Sight::hidden;
      awaited = peer;
      return Sight::waiting;
    }
    if (record->signature != prepared.record.signature) return mismatch(peer, *record);
    const Shown theirs = shown_by(*record);
    if (theirs == Shown::hidden) return Sight::hidden;
    alike = alike && theirs == kind;
  }
  if (!alike) return Sight::hidden;
  TUTTI_CHECK_OK(locate_buffers(prepared));
  return kind == Shown::foreign ? Sight::foreign : Sight::mapped;
}

// Once all show theirs: then nobody leaves the call before all are in it, so all records and regions are still there.
// Where one does not, the others do not wait for each other, and may have freed what they showed.
Status HostCommunicator::locate_buffers(const Prepared& prepared) {
  const CallRecord& own = prepared.record;
  const Problem& problem = prepared.plan->key.problem;
  const std::uint64_t block_bytes = own.count * size_of(static_cast<DataType>(own.type));
  for (Rank peer = 0; peer < ranks_; ++peer) {
    const auto record = board_.call(peer, own.sequence);
    if (!record) return internal_error("rank " + std::to_string(peer) + " left " + current_call() + " too early");
    peer_memory_[peer].input = TUTTI_TRY(locate(peer, record->input, input_blocks(problem, peer) * block_bytes));
    peer_memory_[peer].output = TUTTI_TRY(locate(peer, record->output, output_blocks(problem, peer) * block_bytes));
  }
  return {};
}

Result<std::byte*> HostCommunicator::locate(Rank peer, const BufferReference& reference, std::uint64_t bytes) {
  if (reference.region == kNoBuffer) return static_cast<std::byte*>(nullptr);
  if (one_process_ || reference.region == kForeignAddress) return reinterpret_cast<std::byte*>(reference.offset);
  if (peer == rank_) return static_cast<std::byte*>(nullptr);  // A rank's own buffers are not looked up.
  std::byte* memory = regions_.locate(peer, reference, bytes);
  if (memory == nullptr) {
    TUTTI_CHECK_OK(links_.collect(peer));  // It was sent before the call was announced.
    memory = regions_.locate(peer, reference, bytes);
  }
  if (memory == nullptr)
    return internal_error("rank " + std::to_string(peer) + " named a buffer that lies in no region that it has passed");
  return memory;
}

// The same call, planned for mapped memory.
Result<HostCommunicator::Prepared*> HostCommunicator::mapped_variant(Prepared& prepared, const Call& call) {
  if (prepared.mapped == nullptr) {
    const Choice choice =
        TUTTI_TRY(choose({prepared.plan->key.problem, call.count * size_of(call.type), true, "", ""}));
    auto variant = std::make_unique<Prepared>();
    PlanKey key = prepared.plan->key;
    key.algorithm = prepared.mapped_algorithm;
    key.problem.in_place = prepared.in_place;
    key.lines = key.pipelined = false;
    variant->record = prepared.record;
    variant->in_place = prepared.in_place;
    variant->plan = TUTTI_TRY(wired_plan(key));
    variant->choice = choice;
    variant->launch.peers = peer_memory_.data();
    prepared.mapped = std::move(variant);
  }
  return prepared.mapped.get();
}

void HostCommunicator::bind_processes(Prepared& variant, bool foreign) const {
  variant.interpreter->machine().reach(foreign ? processes_.data() : nullptr, variant.launch.element_bytes);
}

Status HostCommunicator::check_processes(const Prepared& variant) const {
  const CpuMachine::Failure& failure = variant.interpreter->machine().failure();
  if (failure.error == 0) return {};
  if (failure.error == ESRCH)
    return remote_error("rank " + std::to_string(failure.peer) + " died during " + current_call());
  errno = failure.error;
  return system_error("rank " + std::to_string(rank_) + " copies from or to the buffer of rank " +
                      std::to_string(failure.peer) + " in " + current_call());
}

}  // namespace tutti
