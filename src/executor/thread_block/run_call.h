// Body of a launched thread block: runs one channel of one call, or of several calls, and reports failures to the host.
// Host and device compile this source.
#pragma once

#include "src/executor/thread_block/batch.h"
#include "src/executor/thread_block/channel.h"
#include "src/executor/thread_block/ll_call.h"

namespace tutti {

template <typename Channel>
TUTTI_HOST_DEVICE void write_report(const BatchCall& entry, const Channel& channel, std::uint32_t number,
                                    Progress progress) {
  if (channel.own() != progress) return;  // Another thread has the details.
  const Blocked& blocked = channel.blocked();
  const bool absent = channel.absent() != Channel::kNone;
  KernelReport& report = entry.watch.kernel_progress->report;
  if (!compare_exchange(&report.claimed, 0U, 1U)) return;
  report.mismatch = progress == Progress::mismatch;
  report.channel = number;
  report.step = channel.cursor().step;
  report.peer = absent ? channel.absent() : blocked.operand->peer;
  report.sends = !absent && blocked.sends;
  report.signature = entry.call.signature.word;
  store_release(&report.written, 1U);
}

// Reports that the first channel has ended. By a thread that no other awaits, since a store to host memory is slow.
template <typename ThreadBlock>
TUTTI_HOST_DEVICE void report_passed(const BatchCall& entry, std::uint32_t channel, const ThreadBlock& thread_block) {
  if (channel == 0 && thread_block.thread() == 0 && entry.watch.number != 0)
    store_release(&entry.watch.kernel_progress->passed, entry.watch.number);
}

// With time slicing, a launch may have been blocked until its stream was released after a failure. The memory of its
// call, including the image, may be freed by then. Returns true in that case, on all threads.
template <typename ThreadBlock>
TUTTI_HOST_DEVICE bool is_late(ThreadBlock& thread_block) {
  const bool too_late = thread_block.thread() == 0 && thread_block.too_late();
  return thread_block.agree(too_late ? Progress::waiting : Progress::done) != Progress::done;
}

// Like run_call(), for a batch with runs_as_ll(). Runs call `first`, or all calls of a batch in order; `first` is then
// 0. make_thread_block(watch) returns the thread block for a call.
template <typename MakeThreadBlock>
TUTTI_HOST_DEVICE void run_ll_calls(const KernelBatch& batch, std::uint32_t first, std::uint32_t channel,
                                    std::byte* memory, MakeThreadBlock&& make_thread_block) {
  TUTTI_ROLLED
  for (std::uint32_t i = first; i < first + batch.in_order; ++i) {
    const BatchCall& entry = batch.calls[i];
    if (channel >= entry.channels) continue;
    auto thread_block = make_thread_block(entry.watch);
    if (i > first) thread_block.join();  // Other threads may still use the memory for the call before.
    LlCall run(entry.call, channel, thread_block, memory);
    const Progress progress = run.run();
    report_passed(entry, channel, thread_block);
    if (progress == Progress::done) continue;
    write_report(entry, run, channel, progress);
    return;
  }
}

// Called by all threads of the thread block. `memory` is the thread block's own, of ChannelLayout size, unless the call
// has a workspace. `Backend` is CompressedBackend for batches with has_compressed_messages() (compression).
template <template <typename> typename Backend = ThreadBlockBackend, typename ThreadBlock>
TUTTI_HOST_DEVICE void run_call(const BatchCall& entry, std::uint32_t channel, ThreadBlock thread_block,
                                std::byte* memory) {
  if (channel >= entry.channels) return;
  if (entry.call.workspace != nullptr) memory = entry.call.workspace + std::size_t{channel} * entry.workspace_bytes;
  ThreadBlockProgress* saved = entry.watch.progress == nullptr ? nullptr : entry.watch.progress + channel;
  if (saved != nullptr && (saved->state >= ThreadBlockState::done || is_late(thread_block))) return;
  const bool last = saved == nullptr || saved->last != 0;
  Channel<ThreadBlock, Backend<ThreadBlock>> run(entry.call, channel, thread_block, memory, saved);
  const Progress progress = run.run();
  if (progress == Progress::waiting && !last) return;
  report_passed(entry, channel, thread_block);
  if (saved != nullptr && thread_block.thread() == 0)
    saved->state = progress == Progress::done ? ThreadBlockState::done : ThreadBlockState::failed;
  if (progress != Progress::done) write_report(entry, run, channel, progress);
}

}  // namespace tutti
