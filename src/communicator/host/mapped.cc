// Calls whose buffers are mapped by all ranks: plans read and write the peers' memory in place.
//
// A rank whose buffers can be mapped publishes their addresses, and waits for the records of the other ranks. A rank
// whose buffers cannot be mapped publishes that and does not wait. All ranks see the same records, so all ranks that
// wait make the same decision.
#include <string>

#include "src/base/atomic.h"
#include "src/communicator/host/host_communicator.h"
#include "src/communicator/planning/planning.h"

namespace tutti {
namespace {

// Returns whether a rank shows all its buffers.
bool shows(const CallRecord& record) {
  return record.input.region != kHiddenBuffer && record.output.region != kHiddenBuffer;
}

}  // namespace

// Returns the reference of a buffer to publish. Passes its region to the peers before the first use.
BufferReference HostCommunicator::refer(const std::byte* memory, std::uint64_t bytes) {
  if (bytes == 0) return {kNoBuffer, 0};
  if (membership_.one_process) return {kOwnAddressSpace, reinterpret_cast<std::uint64_t>(memory)};
  const auto found = Regions::of_process().find(memory, bytes);
  if (!found) return {};
  if (!passed_regions_.pass(found->region)) return {};  // This call uses lanes.
  return *found;
}

void HostCommunicator::show_buffers(Prepared& prepared, const Call& call) {
  const std::uint64_t block_bytes = call.count * size_of(call.type);
  const Problem& problem = prepared.plan->key.problem;
  passed_regions_.withdraw();
  prepared.record.input = refer(call.input, input_blocks(problem, membership_.rank) * block_bytes);
  prepared.record.output = refer(call.output, output_blocks(problem, membership_.rank) * block_bytes);
  std::uint32_t& shown = membership_.board.entry(membership_.rank).region_notifications;
  if (load_relaxed(&shown) != passed_regions_.messages()) store_release(&shown, passed_regions_.messages());
}

// Maps memory that peers have passed and unmaps memory that they have withdrawn, even if this call does not use it.
Status HostCommunicator::receive_regions() {
  for (Rank peer = 0; peer < membership_.ranks; ++peer) {
    if (membership_.regions.has_notifications(peer, load_acquire(&membership_.board.entry(peer).region_notifications)))
      TUTTI_CHECK_OK(membership_.links.collect(peer));
  }
  return {};
}

// Returns whether all ranks show their buffers. If they do, sets peer_memory_ to their addresses in this process.
Result<HostCommunicator::BufferVisibility> HostCommunicator::see_buffers(const Prepared& prepared, Rank& awaited) {
  if (!membership_.one_process) TUTTI_CHECK_OK(receive_regions());
  if (!shows(prepared.record)) return BufferVisibility::hidden;
  for (Rank peer = 0; peer < membership_.ranks; ++peer) {
    const auto record = membership_.board.call(peer, prepared.record.sequence);
    if (!record) {
      // The peer is past this call. It did not wait for this rank, so its buffers were hidden.
      if (membership_.board.last(peer) > prepared.record.sequence) return BufferVisibility::hidden;
      awaited = peer;
      return BufferVisibility::waiting;
    }
    if (record->signature != prepared.record.signature) return control_.matching.mismatch(peer, *record);
    if (!shows(*record)) return BufferVisibility::hidden;
  }
  TUTTI_CHECK_OK(locate_buffers(prepared));
  return BufferVisibility::mapped;
}

// Called only if all ranks show their buffers. Then no rank leaves the call before all ranks are in it, so all records
// and regions still exist. If a rank hides its buffers, the others do not wait for each other, and may have freed
// theirs.
Status HostCommunicator::locate_buffers(const Prepared& prepared) {
  const CallRecord& own = prepared.record;
  const Problem& problem = prepared.plan->key.problem;
  const std::uint64_t block_bytes = own.count * size_of(static_cast<DataType>(own.type));
  for (Rank peer = 0; peer < membership_.ranks; ++peer) {
    const auto record = membership_.board.call(peer, own.sequence);
    if (!record)
      return internal_error("rank " + std::to_string(peer) + " left " + control_.current.describe() + " too early");
    peer_memory_[peer].input = TUTTI_TRY(locate(peer, record->input, input_blocks(problem, peer) * block_bytes));
    peer_memory_[peer].output = TUTTI_TRY(locate(peer, record->output, output_blocks(problem, peer) * block_bytes));
  }
  return {};
}

Result<std::byte*> HostCommunicator::locate(Rank peer, const BufferReference& reference, std::uint64_t bytes) {
  if (bytes == 0) return static_cast<std::byte*>(nullptr);
  if (membership_.one_process) return reinterpret_cast<std::byte*>(reference.offset);
  if (peer == membership_.rank) return static_cast<std::byte*>(nullptr);  // A rank's own buffers are not looked up.
  std::byte* memory = membership_.regions.locate(peer, reference, bytes);
  if (memory == nullptr) {
    TUTTI_CHECK_OK(membership_.links.collect(peer));  // The region was sent before the call was announced.
    memory = membership_.regions.locate(peer, reference, bytes);
  }
  if (memory == nullptr)
    return internal_error("rank " + std::to_string(peer) + " named a buffer that lies in no region that it has passed");
  return memory;
}

// Returns the same call, prepared for mapped memory.
Result<HostCommunicator::Prepared*> HostCommunicator::mapped_variant(Prepared& prepared, const Call& call) {
  if (prepared.mapped == nullptr) {
    Query query = tutti::query_of(prepared.plan->key.problem, call.count * size_of(call.type));
    query.machine = &machine_;
    query.mapped = true;
    query.algorithm = prepared.mapped_algorithm->name();
    const Choice choice = TUTTI_TRY(choose(query));
    auto variant = std::make_unique<Prepared>();
    PlanKey key = prepared.plan->key;
    key.algorithm = prepared.mapped_algorithm;
    key.problem.in_place = prepared.in_place;
    key.protocol = Protocol::simple;
    key.compression = CompressionFormat::none;
    key.pipelined = false;
    variant->record = prepared.record;
    variant->in_place = prepared.in_place;
    variant->plan = TUTTI_TRY(connected_plan(key));
    variant->choice = choice;
    variant->launch.peers = peer_memory_.data();
    prepared.mapped = std::move(variant);
  }
  return prepared.mapped.get();
}

}  // namespace tutti
