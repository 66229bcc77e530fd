// ABI of NCCL tuner plugins, versions 4 and 5, in our own declarations. A plugin library exports an object
// ncclTunerPlugin_v5 (or _v4), which is one of the structs below.
// Source: NCCL's plugin/tuner headers and the README of its ext-tuner.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tutti::nccl_tuner {

inline constexpr std::size_t kRows = 7;     // Algorithms: Tree, Ring, CollNetDirect, CollNetChain, NVLS, NVLSTree, PAT.
inline constexpr std::size_t kColumns = 3;  // Protocols: LL, LL128, Simple.
inline constexpr float kNotAvailable = -1.0F;
inline constexpr std::int32_t kSuccess = 0;

// Microseconds, or kNotAvailable. NCCL declares the parameter as float** but passes this array.
using Table = std::array<std::array<float, kColumns>, kRows>;
static_assert(sizeof(Table) == 84);

// Levels: 0 none, 1 version, 2 warning, 3 information, 4 abort, 5 trace. Flags: one bit per subsystem.
using Logger = void (*)(std::int32_t level, unsigned long flags, const char* file, std::int32_t line,
                        const char* format, ...);

struct NvlinkDomains {
  std::int32_t count;
  std::int32_t min_ranks;
  std::int32_t max_ranks;
};
static_assert(sizeof(NvlinkDomains) == 12);

// Constants of NCCL's cost model, by link type (3), GPU generation (4) and number of hosts (3).
struct Constants {
  double base_latencies[kRows][kColumns];
  double link_latencies[3][kRows][kColumns];
  double max_ll[4][3];
  double max_ring_ll128_per_channel[4][3];
  double max_tree_ll128_per_channel[4][3];
  double max_tree_per_channel[4][3];
  double max_nvls_tree_per_channel[4][3];
};
static_assert(sizeof(Constants) == 1152);

// Called by any thread, but for one context by one thread at a time. bytes: size of the larger of a rank's buffers.
using Advise = std::int32_t (*)(void* context, std::int32_t collective, std::size_t bytes, std::int32_t operations,
                                float** table, std::int32_t algorithms, std::int32_t protocols, std::int32_t registered,
                                std::int32_t* channels);

struct PluginV4 {
  const char* name;
  std::int32_t (*init)(std::size_t ranks, std::size_t hosts, Logger log, void** context);
  Advise advise;
  std::int32_t (*destroy)(void* context);
};
static_assert(sizeof(PluginV4) == 4 * sizeof(void*));

struct PluginV5 {
  const char* name;
  std::int32_t (*init)(void** context, std::uint64_t communicator, std::size_t ranks, std::size_t hosts, Logger log,
                       NvlinkDomains* domains, Constants* constants);
  Advise advise;
  std::int32_t (*finalize)(void* context);
};
static_assert(sizeof(PluginV5) == 4 * sizeof(void*));

}  // namespace tutti::nccl_tuner
