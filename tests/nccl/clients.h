// Clients of libnccl.so.2: ranks in this process, and test data.
#pragma once

#include <gtest/gtest.h>
#include <nccl.h>

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/nccl/buffers.h"

namespace tutti::test {

// Expects that a call of the NCCL API succeeds. On failure, prints its error message.
#define NCCL_EXPECT_OK(call) EXPECT_EQ(call, ncclSuccess) << ncclGetLastError(nullptr)

inline void expect_error_text(const std::string& part) {
  EXPECT_NE(std::string(ncclGetLastError(nullptr)).find(part), std::string::npos) << ncclGetLastError(nullptr);
}

inline void run_threads(int count, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&, i] { body(i); });
  for (std::thread& thread : threads) thread.join();
}

inline ncclConfig_t non_blocking_config() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

// Waits for a non-blocking communicator and returns its final state.
inline ncclResult_t outcome_of(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) {
    NCCL_EXPECT_OK(ncclCommGetAsyncError(comm, &state));
    std::this_thread::yield();
  }
  return state;
}

// All ranks of a communicator, created by one thread like in programs with one process for all GPUs.
class NcclRanks {
 public:
  explicit NcclRanks(int ranks) : comms_(static_cast<std::size_t>(ranks)) {
    NCCL_EXPECT_OK(ncclCommInitAll(comms_.data(), ranks, device_list()));
  }
  NcclRanks(int ranks, ncclConfig_t config) : comms_(static_cast<std::size_t>(ranks)) {
    ncclUniqueId id;
    NCCL_EXPECT_OK(ncclGetUniqueId(&id));
    NCCL_EXPECT_OK(ncclGroupStart());
    for (int rank = 0; rank < ranks; ++rank) ncclCommInitRankConfig(&comms_[rank], ranks, id, rank, &config);
    const ncclResult_t ended = ncclGroupEnd();
    EXPECT_TRUE(ended == ncclSuccess || ended == ncclInProgress) << ncclGetLastError(nullptr);
    for (const ncclComm_t comm : comms_) EXPECT_EQ(outcome_of(comm), ncclSuccess) << ncclGetLastError(nullptr);
  }
  ~NcclRanks() {
    for (const ncclComm_t comm : comms_) NCCL_EXPECT_OK(ncclCommDestroy(comm));
  }
  NcclRanks(const NcclRanks&) = delete;
  NcclRanks& operator=(const NcclRanks&) = delete;

  int count() const { return static_cast<int>(comms_.size()); }
  ncclComm_t operator[](int rank) const { return comms_[static_cast<std::size_t>(rank)]; }
  // Releases the rank's handle to the caller, who must destroy it.
  ncclComm_t give_up(int rank) { return std::exchange(comms_[static_cast<std::size_t>(rank)], nullptr); }

  // Runs each rank in its own thread.
  void run(const std::function<void(int, ncclComm_t)>& body) const {
    run_threads(count(), [&](int rank) { body(rank, (*this)[rank]); });
  }
  // Runs all ranks in this thread, in one group. Returns the result of ncclGroupEnd().
  ncclResult_t run_in_group(const std::function<void(int, ncclComm_t)>& body) const {
    NCCL_EXPECT_OK(ncclGroupStart());
    for (int rank = 0; rank < count(); ++rank) body(rank, (*this)[rank]);
    return ncclGroupEnd();
  }

 private:
  std::vector<ncclComm_t> comms_;
};

inline void expect_sub_communicator(ncclComm_t part, int expected_rank, int expected_count) {
  int rank = -1, count = -1;
  NCCL_EXPECT_OK(ncclCommUserRank(part, &rank));
  NCCL_EXPECT_OK(ncclCommCount(part, &count));
  EXPECT_EQ(rank, expected_rank);
  EXPECT_EQ(count, expected_count);
}

// Expects the sum of rank + 1 over all ranks of `comm`. `rank` is that of the stream.
inline void expect_sum(ncclComm_t comm, int rank, int expected) {
  int value = rank + 1;
  const ncclResult_t called = ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, stream_of(rank));
  EXPECT_TRUE(called == ncclSuccess || called == ncclInProgress) << ncclGetLastError(nullptr);
  finish(rank);
  EXPECT_EQ(outcome_of(comm), ncclSuccess) << ncclGetLastError(nullptr);
  EXPECT_EQ(value, expected);
}

// Reads a handle that another thread writes.
inline ncclComm_t look(ncclComm_t& part) { return __atomic_load_n(&part, __ATOMIC_ACQUIRE); }

// Element i of a rank: small, so that sums are exact in all types except 8-bit ones.
inline int value_of(int rank, std::size_t i) {
  return static_cast<int>((i * 7 + static_cast<std::size_t>(rank) * 5) % 23);
}

template <typename T>
std::vector<T> values_of(int rank, std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<T>(value_of(rank, i));
  return values;
}

// Returns the sum of element i over all ranks.
inline int sum_of(int ranks, std::size_t i) {
  int sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += value_of(rank, i);
  return sum;
}

}  // namespace tutti::test
