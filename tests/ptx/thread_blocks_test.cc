// Numbers of thread blocks of the launches that calls of libnccl.so.2 make, under minCTAs and maxCTAs.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "tests/ptx/nccl_ranks.h"

namespace tutti::test {
namespace {

// Fewest and most thread blocks of a launch.
struct Blocks {
  int min = 0, max = 0;
};

// Reads the launches of plans in the file of TUTTI_PTX_COUNTS, but the first `skipped` lines of each device.
Blocks read_blocks(const std::string& path, const std::string& device, std::size_t skipped) {
  Blocks blocks;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kernel, on, count;
    std::getline(words, kernel, '\t');
    std::getline(words, on, '\t');
    std::getline(words, count, '\t');
    if (on != device || (skipped > 0 && skipped-- > 0) || kernel.find("::run_") == std::string::npos) continue;
    const int each = std::stoi(count);
    blocks.min = blocks.max == 0 ? each : std::min(blocks.min, each);
    blocks.max = std::max(blocks.max, each);
  }
  return blocks;
}

std::size_t count_lines(const std::string& path, const std::string& device) {
  std::size_t count = 0;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) count += line.find("\t" + device + "\t") != std::string::npos;
  return count;
}

// Returns "<fewest> to <most>" thread blocks of the launches of some calls.
std::string blocks_of_calls(const NcclMember& member, const std::string& path, std::size_t count) {
  const std::string device = std::to_string(member.rank);
  char* memory = nullptr;
  TUTTI_RETURN_PROBLEM(cudaMalloc(reinterpret_cast<void**>(&memory), 4 * count));
  TUTTI_RETURN_PROBLEM(cudaMemset(memory, 0, 4 * count));
  TUTTI_RETURN_PROBLEM(cudaDeviceSynchronize());
  member.meet.arrive_and_wait();
  const std::size_t before = count_lines(path, device);
  const int peer = 1 - member.rank;
  const ncclComm_t comm = member.comm;
  const cudaStream_t stream = member.stream;
  char* const half = memory + 2 * count;
  TUTTI_RETURN_PROBLEM(ncclAllReduce(memory, memory, count, ncclInt32, ncclSum, comm, stream));
  TUTTI_RETURN_PROBLEM(ncclBroadcast(memory, memory, count, ncclInt32, 0, comm, stream));
  TUTTI_RETURN_PROBLEM(ncclGroupStart());
  TUTTI_RETURN_PROBLEM(ncclSend(memory, count / 2, ncclInt32, peer, comm, stream));
  TUTTI_RETURN_PROBLEM(ncclRecv(half, count / 2, ncclInt32, peer, comm, stream));
  TUTTI_RETURN_PROBLEM(ncclGroupEnd());
  TUTTI_RETURN_PROBLEM(ncclGroupStart());
  TUTTI_RETURN_PROBLEM(ncclAllReduce(memory, memory, count / 2, ncclInt32, ncclSum, comm, stream));
  TUTTI_RETURN_PROBLEM(ncclAllReduce(half, half, count / 2, ncclInt32, ncclMax, comm, stream));
  TUTTI_RETURN_PROBLEM(ncclGroupEnd());
  TUTTI_RETURN_PROBLEM(cudaStreamSynchronize(stream));
  member.meet.arrive_and_wait();
  const Blocks blocks = read_blocks(path, device, before);
  return std::to_string(blocks.min) + " to " + std::to_string(blocks.max);
}

constexpr std::size_t kSmall = 256, kLarge = 256 << 10;  // Elements of 4 bytes.

ncclConfig_t config_with(int ncclConfig_t::*member, int value) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.*member = value;
  return config;
}

Blocks blocks_with(const ncclConfig_t& config, std::size_t count, Settings settings = {}) {
  const std::string path = testing::TempDir() + "ptx_counts_" + std::to_string(::getpid());
  settings.emplace_back("TUTTI_PTX_COUNTS", path);
  const std::string report =
      run_nccl_ranks(settings, config, [&](const NcclMember& member) { return blocks_of_calls(member, path, count); });
  std::remove(path.c_str());
  Blocks blocks;
  EXPECT_EQ(std::sscanf(report.c_str(), "%d to %d", &blocks.min, &blocks.max), 2) << report;
  return blocks;
}

const ncclConfig_t kDefaults = NCCL_CONFIG_INITIALIZER;

TEST(ThreadBlocks, AreAtMostMaxCtas) {
  EXPECT_GT(blocks_with(kDefaults, kLarge).max, 2);
  EXPECT_LE(blocks_with(config_with(&ncclConfig_t::maxCTAs, 2), kLarge).max, 2);
  EXPECT_LE(blocks_with(kDefaults, kLarge, {{"NCCL_MAX_CTAS", "2"}}).max, 2);
}

TEST(ThreadBlocks, AreAtLeastMinCtas) {
  EXPECT_LT(blocks_with(kDefaults, kSmall).min, 3);
  EXPECT_GE(blocks_with(config_with(&ncclConfig_t::minCTAs, 3), kSmall).min, 3);
  EXPECT_GE(blocks_with(kDefaults, kSmall, {{"NCCL_MIN_CTAS", "3"}}).min, 3);
}

}  // namespace
}  // namespace tutti::test
