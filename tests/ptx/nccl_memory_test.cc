// Memory of ncclMemAlloc(): virtual memory that other processes can open, or else memory of cudaMalloc().
#include "tests/ptx/nccl_ranks.h"

namespace tutti::test {
namespace {

constexpr std::size_t kCount = 5000;

// Sums in memory of ncclMemAlloc(). Returns which memory it is.
std::string sum_in_allocated_memory(const NcclMember& member) {
  void* memory = nullptr;
  TUTTI_RETURN_PROBLEM(ncclMemAlloc(&memory, kCount * sizeof(int)));
  const std::vector<int> own(kCount, member.rank + 1);
  std::vector<int> sum(kCount);
  TUTTI_RETURN_PROBLEM(cudaMemcpyAsync(memory, own.data(), kCount * sizeof(int), cudaMemcpyDefault, member.stream));
  member.meet.arrive_and_wait();
  TUTTI_RETURN_PROBLEM(ncclAllReduce(memory, memory, kCount, ncclInt32, ncclSum, member.comm, member.stream));
  TUTTI_RETURN_PROBLEM(cudaStreamSynchronize(member.stream));
  TUTTI_RETURN_PROBLEM(cudaMemcpy(sum.data(), memory, kCount * sizeof(int), cudaMemcpyDefault));
  // Only memory of cudaMalloc() has such a handle.
  cudaIpcMemHandle_t handle;
  const cudaError_t has_handle = cudaIpcGetMemHandle(&handle, memory);
  cudaGetLastError();
  member.meet.arrive_and_wait();
  TUTTI_RETURN_PROBLEM(ncclMemFree(memory));
  if (sum != std::vector<int>(kCount, 3)) return "wrong sums";
  return has_handle == cudaSuccess ? "cudaMalloc" : "virtual memory";
}

std::string memory_where_files_are(const char* files) {
  const ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  return run_nccl_ranks({{"TUTTI_PTX_FILES", files}}, config, sum_in_allocated_memory);
}

TEST(NcclMemory, IsVirtualMemory_IfFilesCanBeExported) {
  EXPECT_EQ(memory_where_files_are("allowed"), "virtual memory");
}

TEST(NcclMemory, IsPlainMemory_IfNoFilesCanBeExported) {
  EXPECT_EQ(memory_where_files_are("unsupported"), "cudaMalloc");
  EXPECT_EQ(memory_where_files_are("refused"), "cudaMalloc");
}

}  // namespace
}  // namespace tutti::test
