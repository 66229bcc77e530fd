// Calls whose buffers are in windows, and detection of programs that break the promise.
#include "src/communicator/device/device_communicator.h"

namespace tutti {

Result<WindowHandle> DeviceCommunicator::show_window(const WindowBuffer& own) {
  TUTTI_CHECK_OK(failure());
  TUTTI_CHECK_OK(settle());
  return windows_.show(own);
}

Status DeviceCommunicator::withdraw_window(WindowHandle window) {
  TUTTI_CHECK_OK(await_own_calls());
  return windows_.withdraw(window);
}

// Returns no windows for calls with a root: other ranks do not know which buffers the root passes.
DeviceCommunicator::CallWindows DeviceCommunicator::windows_of(const Call& call) const {
  if (!windows_.any() || peers_.on_one_device() || call.kind != Kind::collective) return {};
  if (has_root(call.collective) || call.count == 0) return {};
  const Problem problem = problem_of(call, ranks_);
  const std::uint64_t block_bytes = call.count * size_of(call.type);
  return {windows_.find(call.input, input_blocks(problem, rank_) * block_bytes),
          windows_.find(call.output, output_blocks(problem, rank_) * block_bytes)};
}

// Records the windows for the peers and for error messages.
void DeviceCommunicator::note_windows(const Call& call, CallRecord& record) const {
  const CallWindows windows = windows_of(call);
  record.input.region = record.output.region = kHiddenBuffer;
  if (!windows.both()) return;
  record.input.region = windows.input;
  record.output.region = windows.output;
}

// Fails if this rank passed buffers in windows and a peer did not, or the reverse: some ranks would use lanes while
// others wait in windows. The rank that calls last detects it, unless others are many calls ahead; then the timeout
// reports it.
Status DeviceCommunicator::check_windows(const CallRecord& ours) {
  if (!windows_.any()) return {};
  for (Rank peer = 0; peer < ranks_; ++peer) {
    const auto theirs = board().call(peer, ours.sequence);
    if (!theirs || theirs->signature != ours.signature) continue;
    Status broken = broken_promise(ours, peer, *theirs);
    if (!broken.ok()) return fail(std::move(broken));
  }
  return {};
}

Status DeviceCommunicator::broken_promise(const CallRecord& ours, Rank peer, const CallRecord& theirs) const {
  const bool own_in_windows = ours.input.region != kHiddenBuffer;
  if (own_in_windows == (theirs.input.region != kHiddenBuffer)) return {};
  const Rank outside = own_in_windows ? peer : rank_;
  const Rank inside = own_in_windows ? rank_ : peer;
  const std::string on = options().name.empty() ? "" : " on " + options().name;
  return invalid_usage("in " + describe(ours) + " #" + std::to_string(ours.sequence) + on + " rank " +
                       std::to_string(outside) + " passed buffers outside of symmetric windows, and rank " +
                       std::to_string(inside) +
                       " in them: pass them alike on all ranks, or register the windows without the promise");
}

}  // namespace tutti
