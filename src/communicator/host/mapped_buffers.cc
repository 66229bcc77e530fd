#include "src/communicator/host/mapped_buffers.h"

#include <string>

#include "src/base/atomic.h"
#include "src/communicator/planning/planning.h"

namespace tutti {
namespace {

// Returns whether a rank shows all its buffers.
bool shows(const CallRecord& record) {
  return record.input.region != kHiddenBuffer && record.output.region != kHiddenBuffer;
}

}  // namespace

bool may_be_mapped(const Membership& membership, const Call& call) {
  // Factors are known only to their own rank.
  if (membership.spans_hosts || call.reduction == Reduction::pre_mul_sum) return false;
  if (membership.one_process) return true;
  const Problem problem = problem_of(call, membership.ranks);
  const std::uint64_t block_bytes = call.count * size_of(call.type);
  const std::uint64_t input_bytes = input_blocks(problem, membership.rank) * block_bytes;
  const std::uint64_t output_bytes = output_blocks(problem, membership.rank) * block_bytes;
  const Regions& regions = Regions::of_process();
  return (input_bytes == 0 || regions.find(call.input, input_bytes)) &&
         (output_bytes == 0 || regions.find(call.output, output_bytes));
}

MappedBuffers::MappedBuffers(ControlPlane& control)
    : membership_(control.membership),
      current_(control.current),
      matching_(control.matching),
      passed_regions_(membership_.mesh, membership_.rank, membership_.ranks),
      peers_(membership_.ranks) {}

// Returns the reference of a buffer to publish. Passes its region to the peers before the first use.
BufferReference MappedBuffers::refer(const std::byte* memory, std::uint64_t bytes) {
  if (bytes == 0) return {kNoBuffer, 0};
  if (membership_.one_process) return {kOwnAddressSpace, reinterpret_cast<std::uint64_t>(memory)};
  const auto found = Regions::of_process().find(memory, bytes);
  if (!found) return {};
  if (!passed_regions_.pass(found->region)) return {};  // This call uses lanes.
  return *found;
}

void MappedBuffers::show(CallRecord& record, const Problem& problem, const Call& call) {
  const std::uint64_t block_bytes = call.count * size_of(call.type);
  passed_regions_.withdraw();
  record.input = refer(call.input, input_blocks(problem, membership_.rank) * block_bytes);
  record.output = refer(call.output, output_blocks(problem, membership_.rank) * block_bytes);
  std::uint32_t& shown = membership_.board.entry(membership_.rank).region_notifications;
  if (load_relaxed(&shown) != passed_regions_.messages()) store_release(&shown, passed_regions_.messages());
}

// Maps memory that peers have passed and unmaps memory that they have withdrawn, even if this call does not use it.
Status MappedBuffers::receive_regions() {
  for (Rank peer = 0; peer < membership_.ranks; ++peer) {
    if (membership_.regions.has_notifications(peer, load_acquire(&membership_.board.entry(peer).region_notifications)))
      TUTTI_CHECK_OK(membership_.lanes.collect(peer));
  }
  return {};
}

Result<BufferVisibility> MappedBuffers::see(const CallRecord& own, const Problem& problem, Rank& awaited) {
  if (!membership_.one_process) TUTTI_CHECK_OK(receive_regions());
  if (!shows(own)) return BufferVisibility::hidden;
  for (Rank peer = 0; peer < membership_.ranks; ++peer) {
    const auto record = membership_.board.call(peer, own.sequence);
    if (!record) {
      // The peer is past this call. It did not wait for this rank, so its buffers were hidden.
      if (membership_.board.last(peer) > own.sequence) return BufferVisibility::hidden;
      awaited = peer;
      return BufferVisibility::waiting;
    }
    if (record->signature != own.signature) return matching_.mismatch(peer, *record);
    if (!shows(*record)) return BufferVisibility::hidden;
  }
  TUTTI_CHECK_OK(locate_all(own, problem));
  return BufferVisibility::mapped;
}

// Called only if all ranks show their buffers. Then no rank leaves the call before all ranks are in it, so all records
// and regions still exist. If a rank hides its buffers, the others do not wait for each other, and may have freed
// theirs.
Status MappedBuffers::locate_all(const CallRecord& own, const Problem& problem) {
  const std::uint64_t block_bytes = own.count * size_of(static_cast<DataType>(own.type));
  for (Rank peer = 0; peer < membership_.ranks; ++peer) {
    const auto record = membership_.board.call(peer, own.sequence);
    if (!record) return internal_error("rank " + std::to_string(peer) + " left " + current_.describe() + " too early");
    peers_[peer].input = TUTTI_TRY(locate(peer, record->input, input_blocks(problem, peer) * block_bytes));
    peers_[peer].output = TUTTI_TRY(locate(peer, record->output, output_blocks(problem, peer) * block_bytes));
  }
  return {};
}

Result<std::byte*> MappedBuffers::locate(Rank peer, const BufferReference& reference, std::uint64_t bytes) {
  if (bytes == 0) return static_cast<std::byte*>(nullptr);
  if (membership_.one_process) return reinterpret_cast<std::byte*>(reference.offset);
  if (peer == membership_.rank) return static_cast<std::byte*>(nullptr);  // A rank's own buffers are not looked up.
  std::byte* memory = membership_.regions.locate(peer, reference, bytes);
  if (memory == nullptr) {
    TUTTI_CHECK_OK(membership_.lanes.collect(peer));  // The region was sent before the call was announced.
    memory = membership_.regions.locate(peer, reference, bytes);
  }
  if (memory == nullptr)
    return internal_error("rank " + std::to_string(peer) + " named a buffer that lies in no region that it has passed");
  return memory;
}

}  // namespace tutti
