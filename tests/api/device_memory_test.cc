// Memory of a device: allocations of the API, and what communicators leave.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

#include "src/base/atomic.h"
#include "src/communicator/peers/deferred_frees.h"
#include "tests/api/ranks.h"
#include "tests/executor/current_rig.h"
#include "tutti/tutti.h"

namespace tutti::test {
namespace {

constexpr int kRanks = 3;

std::array<tutti_comm, kRanks> create() {
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  options.memory = "cuda";
  std::array<tutti_comm, kRanks> comms = {};
  TUTTI_EXPECT_OK(tutti_comm_create_all(kRanks, &options, comms.data()));
  return comms;
}

void destroy(const std::array<tutti_comm, kRanks>& comms) {
  TUTTI_EXPECT_OK(tutti_group_start());
  for (const tutti_comm comm : comms) TUTTI_EXPECT_OK(tutti_comm_destroy(comm));
  TUTTI_EXPECT_OK(tutti_group_end());
}

// Memory that a rank has freed while other ranks have it mapped, on a board of two ranks that have not left yet.
class Left {
 public:
  explicit Left(std::size_t bytes) {
    const auto rank_memory = std::make_shared<RankDeviceMemory>(find_device().value());
    File file;
    EXPECT_TRUE(rank_memory->allocate_exported_lanes(bytes, file).ok());
    keep_until_all_have_left(rank_memory, board_);
    memory_ = rank_memory;
  }
  bool is_freed() const { return memory_.expired(); }
  void all_leave() const {
    for (Rank rank = 0; rank < board_.ranks(); ++rank) store_release(&board_.entry(rank).left, 1U);
  }

 private:
  Board board_ = Board::create(2).value();
  std::weak_ptr<RankDeviceMemory> memory_;
};

TEST(DeviceMemory, AllocationReclaimsDeferredFrees_WhenMemoryIsExhausted) {
  constexpr std::size_t kMaxOfIt = std::size_t{700} << 20;  // Most of the device's memory.
  const Left left(kMaxOfIt);
  void* memory = nullptr;
  EXPECT_EQ(tutti_mem_alloc_cuda(&memory, kMaxOfIt), tutti_system_error) << "somebody has it open";
  left.all_leave();
  ASSERT_EQ(tutti_mem_alloc_cuda(&memory, kMaxOfIt), tutti_ok) << tutti_last_error(nullptr);
  EXPECT_EQ(tutti_mem_free(memory), tutti_ok);
}

TEST(DeviceMemory, DestroyReclaimsDeferredFrees) {
  const auto comms = create();
  const Left left(1 << 20);
  left.all_leave();
  ASSERT_FALSE(left.is_freed());
  destroy(comms);
  EXPECT_TRUE(left.is_freed());
}

// Rank 0 has failed, so its thread blocks may still use the memory after their stream is released.
TEST(DeviceMemory, KeepsMemory_WhileAnotherRankOfProcessHoldsIt) {
  const auto rank_memory = std::make_shared<RankDeviceMemory>(find_device().value());
  File file;
  ASSERT_TRUE(rank_memory->allocate_exported_lanes(1 << 20, file).ok());
  const Board board = Board::create(2).value();
  board.fail(0, aborted_error("rank 0 aborted"));
  keep_until_all_have_left(rank_memory, board);
  run_deferred_frees();
  EXPECT_NE(rank_memory->exported_lanes(), nullptr);
}

TEST(DeviceMemory, FreesUnusedMemory_AfterFailure) {
  auto rank_memory = std::make_shared<RankDeviceMemory>(find_device().value());
  const std::weak_ptr<RankDeviceMemory> kept = rank_memory;
  const Board board = Board::create(2).value();
  keep_until_all_have_left(std::move(rank_memory), board);
  EXPECT_FALSE(kept.expired());
  board.fail(0, aborted_error("rank 0 aborted"));
  run_deferred_frees();
  EXPECT_TRUE(kept.expired());
}

TEST(DeviceMemory, MemFreeReturnsMemoryToDevice) {
  ASSERT_EQ(tutti_mem_trim_cuda(0), tutti_ok);  // Otherwise the allocation comes from the cache.
  const std::string before = device_usage();
  void* memory = nullptr;
  ASSERT_EQ(tutti_mem_alloc_cuda(&memory, 1000), tutti_ok);
  EXPECT_NE(device_usage(), before);
  EXPECT_EQ(tutti_mem_free(memory), tutti_ok);
  EXPECT_EQ(device_usage(), before);
  EXPECT_EQ(tutti_mem_free(memory), tutti_invalid_argument);
  EXPECT_EQ(tutti_mem_alloc_cuda(&memory, 0), tutti_invalid_argument);
}

TEST(DeviceMemory, TrimReturnsMemoryOfEndedCommunicators) {
  destroy(create());
  ASSERT_EQ(tutti_mem_trim_cuda(0), tutti_ok);
  const std::string before = device_usage();
  destroy(create());
  EXPECT_NE(device_usage(), before) << "the memory is cached";
  ASSERT_EQ(tutti_mem_trim_cuda(0), tutti_ok);
  EXPECT_EQ(device_usage(), before);
  EXPECT_EQ(tutti_mem_trim_cuda(1), tutti_invalid_argument);
  EXPECT_EQ(tutti_mem_trim_cuda(-1), tutti_invalid_argument);
  EXPECT_STREQ(tutti_last_error(nullptr), "tutti_mem_trim_cuda: device is -1: pass the number of a GPU");
}

}  // namespace
}  // namespace tutti::test
