// Numbers of thread blocks of the launches that calls of libnccl.so.2 make, under minCTAs, maxCTAs and CTAPolicy.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "tests/ptx/nccl_ranks.h"

namespace tutti::test {
namespace {

// Fewest and most thread blocks of a launch.
struct Blocks {
  int min = 0, max = 0;
};

// A launch, as a line of the file of TUTTI_PTX_COUNTS describes it.
struct Launch {
  std::string kernel;
  int blocks = 0;
};

// Reads the launches on a device.
std::vector<Launch> read_launches(const std::string& path, const std::string& device) {
  std::vector<Launch> launches;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kernel, on, count;
    std::getline(words, kernel, '\t');
    std::getline(words, on, '\t');
    std::getline(words, count, '\t');
    if (on == device) launches.push_back({kernel, std::stoi(count)});
  }
  return launches;
}

// Reads the launches of plans on a device, but not the first `skipped` launches.
Blocks read_blocks(const std::string& path, const std::string& device, std::size_t skipped) {
  Blocks blocks;
  const std::vector<Launch> launches = read_launches(path, device);
  for (std::size_t i = skipped; i < launches.size(); ++i) {
    const Launch& launch = launches[i];
    if (launch.kernel.find("::run_") == std::string::npos) continue;
    blocks.min = blocks.max == 0 ? launch.blocks : std::min(blocks.min, launch.blocks);
    blocks.max = std::max(blocks.max, launch.blocks);
  }
  return blocks;
}

// Runs some calls on a buffer of `count` elements of 4 bytes, and returns "<fewest> to <most>" thread blocks of their
// launches.
std::string blocks_of(const NcclMember& member, const std::string& path, std::size_t count,
                      const std::function<std::string(char* memory)>& make_calls) {
  const std::string device = std::to_string(member.rank);
  char* memory = nullptr;
  TUTTI_RETURN_PROBLEM(cudaMalloc(reinterpret_cast<void**>(&memory), 4 * count));
  TUTTI_RETURN_PROBLEM(cudaMemset(memory, 0, 4 * count));
  TUTTI_RETURN_PROBLEM(cudaDeviceSynchronize());
  member.meet.arrive_and_wait();
  const std::size_t before = read_launches(path, device).size();
  const std::string problem = make_calls(memory);
  if (!problem.empty()) return problem;
  TUTTI_RETURN_PROBLEM(cudaStreamSynchronize(member.stream));
  member.meet.arrive_and_wait();
  const Blocks blocks = read_blocks(path, device, before);
  return std::to_string(blocks.min) + " to " + std::to_string(blocks.max);
}

std::string blocks_of_collectives(const NcclMember& member, const std::string& path, std::size_t count) {
  return blocks_of(member, path, count, [&](char* memory) -> std::string {
    char* const half = memory + 2 * count;
    TUTTI_RETURN_PROBLEM(ncclAllReduce(memory, memory, count, ncclInt32, ncclSum, member.comm, member.stream));
    TUTTI_RETURN_PROBLEM(ncclBroadcast(memory, memory, count, ncclInt32, 0, member.comm, member.stream));
    TUTTI_RETURN_PROBLEM(ncclGroupStart());
    TUTTI_RETURN_PROBLEM(ncclAllReduce(memory, memory, count / 2, ncclInt32, ncclSum, member.comm, member.stream));
    TUTTI_RETURN_PROBLEM(ncclAllReduce(half, half, count / 2, ncclInt32, ncclMax, member.comm, member.stream));
    TUTTI_RETURN_PROBLEM(ncclGroupEnd());
    return "";
  });
}

// Two calls in one launch: a send and a receive.
std::string blocks_of_messages(const NcclMember& member, const std::string& path, std::size_t count) {
  return blocks_of(member, path, count, [&](char* memory) -> std::string {
    const int peer = 1 - member.rank;
    TUTTI_RETURN_PROBLEM(ncclGroupStart());
    TUTTI_RETURN_PROBLEM(ncclSend(memory, count / 2, ncclInt32, peer, member.comm, member.stream));
    TUTTI_RETURN_PROBLEM(ncclRecv(memory + 2 * count, count / 2, ncclInt32, peer, member.comm, member.stream));
    TUTTI_RETURN_PROBLEM(ncclGroupEnd());
    return "";
  });
}

// The same for all launches so far, the last of which are an all-gather and an all-to-all between windows.
std::string blocks_between_windows(const NcclMember& member, const std::string& path, std::size_t count) {
  void* memory = nullptr;
  TUTTI_RETURN_PROBLEM(ncclMemAlloc(&memory, 3 * 4 * count));
  ncclWindow_t window = nullptr;
  TUTTI_RETURN_PROBLEM(ncclCommWindowRegister(member.comm, memory, 3 * 4 * count, &window, NCCL_WIN_COLL_SYMMETRIC));
  TUTTI_RETURN_PROBLEM(cudaMemset(memory, member.rank + 1, 4 * count));
  TUTTI_RETURN_PROBLEM(cudaDeviceSynchronize());
  auto* input = static_cast<std::int32_t*>(memory);
  std::int32_t* const output = input + count;
  std::vector<std::int32_t> gathered(2 * count), exchanged(count);
  TUTTI_RETURN_PROBLEM(ncclAllGather(input, output, count, ncclInt32, member.comm, member.stream));
  TUTTI_RETURN_PROBLEM(cudaMemcpyAsync(gathered.data(), output, 2 * 4 * count, cudaMemcpyDeviceToHost, member.stream));
  TUTTI_RETURN_PROBLEM(ncclAlltoAll(input, output, count / 2, ncclInt32, member.comm, member.stream));
  TUTTI_RETURN_PROBLEM(cudaMemcpyAsync(exchanged.data(), output, 4 * count, cudaMemcpyDeviceToHost, member.stream));
  TUTTI_RETURN_PROBLEM(cudaStreamSynchronize(member.stream));
  member.meet.arrive_and_wait();
  const auto is_right = [](const std::vector<std::int32_t>& blocks) {
    const auto half = static_cast<std::ptrdiff_t>(blocks.size() / 2);
    return std::count(blocks.begin(), blocks.begin() + half, 0x01010101) == half &&
           std::count(blocks.begin() + half, blocks.end(), 0x02020202) == half;
  };
  const Blocks blocks = read_blocks(path, std::to_string(member.rank), 0);
  TUTTI_RETURN_PROBLEM(ncclCommWindowDeregister(member.comm, window));
  TUTTI_RETURN_PROBLEM(ncclMemFree(memory));
  return is_right(gathered) && is_right(exchanged) ? std::to_string(blocks.min) + " to " + std::to_string(blocks.max)
                                                   : "wrong";
}

constexpr std::size_t kSmall = 256, kLarge = 256 << 10;  // Elements of 4 bytes.

ncclConfig_t config_with(int ncclConfig_t::*member, int value) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.*member = value;
  return config;
}

using CountBlocks = std::string (*)(const NcclMember&, const std::string& path, std::size_t count);

Blocks blocks_with(const ncclConfig_t& config, std::size_t count, Settings settings = {},
                   CountBlocks count_blocks = blocks_of_collectives) {
  const std::string path = testing::TempDir() + "ptx_counts_" + std::to_string(::getpid());
  settings.emplace_back("TUTTI_PTX_COUNTS", path);
  const std::string report =
      run_nccl_ranks(settings, config, [&](const NcclMember& member) { return count_blocks(member, path, count); });
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
  EXPECT_GT(blocks_with(kDefaults, kLarge, {}, blocks_of_messages).max, 2);
  EXPECT_EQ(blocks_with(config_with(&ncclConfig_t::maxCTAs, 1), kLarge, {}, blocks_of_messages).max, 2);
}

TEST(ThreadBlocks, AreAtLeastMinCtas) {
  EXPECT_LT(blocks_with(kDefaults, kSmall).min, 3);
  EXPECT_GE(blocks_with(config_with(&ncclConfig_t::minCTAs, 3), kSmall).min, 3);
  EXPECT_GE(blocks_with(kDefaults, kSmall, {{"NCCL_MIN_CTAS", "3"}}).min, 3);
}

// With policy efficiency, at most 24, unless minCTAs or maxCTAs is higher.
TEST(ThreadBlocks, AreFewBetweenWindows_WithPolicyEfficiency) {
  constexpr std::size_t kVeryLarge = 512 << 10;
  const auto max_with = [](const ncclConfig_t& config, Settings settings = {}) {
    return blocks_with(config, kVeryLarge, settings, blocks_between_windows).max;
  };
  EXPECT_GT(max_with(kDefaults), 24);
  ncclConfig_t config = config_with(&ncclConfig_t::CTAPolicy, NCCL_CTA_POLICY_EFFICIENCY);
  EXPECT_EQ(max_with(config), 24);
  EXPECT_EQ(max_with(kDefaults, {{"NCCL_CTA_POLICY", "efficiency"}}), 24);
  EXPECT_GT(max_with(config, {{"NCCL_CTA_POLICY", "default"}}), 24);
  config.minCTAs = 28;
  EXPECT_EQ(max_with(config), 28);
  config.maxCTAs = 30;
  EXPECT_EQ(max_with(config), 30);
}

// With policy zero, one thread block awaits the peers, and copy engines move the data.
TEST(ThreadBlocks, AreOneBetweenWindows_WithPolicyZero) {
  const auto max_with = [](int policy, Settings settings = {}) {
    return blocks_with(config_with(&ncclConfig_t::CTAPolicy, policy), kLarge, settings, blocks_between_windows).max;
  };
  EXPECT_GT(max_with(NCCL_CTA_POLICY_EFFICIENCY), 1);
  EXPECT_EQ(max_with(NCCL_CTA_POLICY_ZERO), 1);
  EXPECT_EQ(max_with(NCCL_CTA_POLICY_ZERO | NCCL_CTA_POLICY_EFFICIENCY), 1);
  EXPECT_EQ(max_with(NCCL_CTA_POLICY_DEFAULT, {{"NCCL_CTA_POLICY", "2"}}), 1);
  EXPECT_EQ(max_with(NCCL_CTA_POLICY_DEFAULT, {{"NCCL_CTA_POLICY", "zero"}}), 1);
  EXPECT_GT(max_with(NCCL_CTA_POLICY_ZERO, {{"NCCL_CTA_POLICY", "DEFAULT"}}), 1);
  EXPECT_GT(max_with(NCCL_CTA_POLICY_ZERO, {{"NCCL_ALGO", "ring"}}), 1);
}

}  // namespace
}  // namespace tutti::test
