// What a thread block of a launch does: its channel of its call, and a report to the host if that does not end well.
// Host and device compile this source.
#pragma once

#include "src/executor/thread_block/batch.h"
#include "src/executor/thread_block/channel.h"

namespace tutti {

template <typename Channel>
TUTTI_HOST_DEVICE void write_report(const BatchCall& entry, const Channel& channel, std::uint32_t number,
                                    Progress progress) {
  if (channel.own() != progress) return;  // Another worker knows.
  const Blocked& blocked = channel.blocked();
  const bool absent = channel.absent() != Channel::kNobody;
  KernelReport& report = entry.watch.reported->report;
  if (!compare_exchange(&report.claimed, 0U, 1U)) return;
  report.mismatch = progress == Progress::mismatch;
  report.channel = number;
  report.step = channel.cursor().step;
  report.peer = absent ? channel.absent() : blocked.operand->peer;
  report.sends = !absent && blocked.sends;
  report.signature = entry.call.signature.word;
  store_release(&report.written, 1U);
}

// A launch that takes turns may have been held up until its stream was let go, after a failure: nothing that its call
// works with has to be there any more, not even its image. All workers agree.
template <typename ThreadBlock>
TUTTI_HOST_DEVICE bool comes_too_late(ThreadBlock& block) {
  const bool too_late = block.worker() == 0 && block.too_late();
  return block.agree(too_late ? Progress::waiting : Progress::done) != Progress::done;
}

// All workers of the thread block call it. `memory`: the thread block's own, as much as the call's channels take (see
// ChannelLayout), unless the call has a workspace. `Machine`: CompressedMachine for a batch that
// has_compressed_messages().
template <template <typename> typename Machine = BlockMachine, typename ThreadBlock>
TUTTI_HOST_DEVICE void run_call(const BatchCall& entry, std::uint32_t channel, ThreadBlock block, std::byte* memory) {
  if (channel >= entry.channels) return;
  if (entry.call.workspace != nullptr) memory = entry.call.workspace + std::size_t{channel} * entry.workspace_bytes;
  KernelTurn* turn = entry.watch.turns == nullptr ? nullptr : entry.watch.turns + channel;
  if (turn != nullptr && (turn->state >= TurnState::done || comes_too_late(block))) return;
  const bool last = turn == nullptr || turn->last != 0;
  if (channel == 0 && block.worker() == 0) store_release(&entry.watch.reported->begun, entry.watch.number);
  Channel<ThreadBlock, Machine<ThreadBlock>> run(entry.call, channel, block, memory, turn);
  const Progress progress = run.run();
  if (progress == Progress::waiting && !last) return;
  if (turn != nullptr && block.worker() == 0)
    turn->state = progress == Progress::done ? TurnState::done : TurnState::failed;
  if (progress != Progress::done) write_report(entry, run, channel, progress);
}

}  // namespace tutti
