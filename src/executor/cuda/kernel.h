// The kernels that run_plan plans: a block for each channel of each call of a KernelBatch, which is their only
// argument; and what goes before calls whose inputs have residuals.
#pragma once

#include <cstdint>

namespace tutti {

inline constexpr std::uint32_t kThreads = 512;  // Of a block.

// The symbol to launch, with a grid of (channels, calls) blocks of kThreads threads, and as much dynamic shared memory
// as the widest call's channel takes (0 for those with a workspace).
const void* plan_kernel();
// The same for a batch that has_compressed_messages().
const void* compressed_kernel();
// What a CorrectTask, its only argument, asks for: a warp has a group at a time, so any grid does, of blocks of
// kThreads.
const void* correct_kernel();

}  // namespace tutti
