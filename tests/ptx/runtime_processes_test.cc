// Device memory that processes share through IPC handles and files, by the CUDA stand-in.
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "src/base/atomic.h"
#include "tests/bootstrap/processes.h"
#include "tests/ptx/runtime_gate.h"

namespace tutti::test {
namespace {

constexpr std::size_t kBytes = std::size_t{2} << 20;

std::string failed(const char* call, int error) { return error == 0 ? "" : call + (" " + std::to_string(error)); }

// Data that the processes exchange. Each waits for the other's step.
struct Exchange {
  std::uint32_t step = 0;
  cudaIpcMemHandle_t handle = {};
};

void reach(Exchange& exchange, std::uint32_t step) { store_release(&exchange.step, step); }
void await(const Exchange& exchange, std::uint32_t step) {
  while (load_acquire(&exchange.step) < step) ::usleep(100);
}

std::string read_word(const std::byte* memory, std::uint32_t wanted) {
  std::uint32_t word = 0;
  if (cudaMemcpy(&word, memory, sizeof word, cudaMemcpyDefault) != cudaSuccess) return "cudaMemcpy";
  return word == wanted ? "" : "the word is " + std::to_string(word);
}

TEST(PtxProcesses, ShareMemoryByIpcHandle) {
  const Shared<Exchange> exchange;
  Processes processes;
  processes.start([&]() -> std::string {
    std::byte* memory = nullptr;
    void* own = nullptr;
    cudaMalloc(reinterpret_cast<void**>(&memory), 100);  // Shifts the next allocation.
    cudaMalloc(reinterpret_cast<void**>(&memory), 5000);
    cudaMemset(memory, 1, 5000);
    cudaDeviceSynchronize();
    const int error = cudaIpcGetMemHandle(&exchange->handle, memory);
    if (cudaIpcOpenMemHandle(&own, exchange->handle, cudaIpcMemLazyEnablePeerAccess) != cudaErrorDeviceUninitialized)
      return "a process opened its own memory";
    reach(*exchange, 1);
    await(*exchange, 2);
    return failed("cudaIpcGetMemHandle", error) + read_word(memory + 4096, 0x02020202);
  });
  processes.start([&]() -> std::string {
    std::byte *memory = nullptr, *again = nullptr;
    await(*exchange, 1);
    int error =
        cudaIpcOpenMemHandle(reinterpret_cast<void**>(&memory), exchange->handle, cudaIpcMemLazyEnablePeerAccess);
    if (error != 0) return failed("cudaIpcOpenMemHandle", error);
    cudaIpcOpenMemHandle(reinterpret_cast<void**>(&again), exchange->handle, cudaIpcMemLazyEnablePeerAccess);
    if (again != memory) return "the second address differs";
    const std::string failure = read_word(memory + 4096, 0x01010101);
    cudaIpcCloseMemHandle(memory);
    cudaMemset(memory, 2, 5000);
    cudaDeviceSynchronize();
    error = cudaIpcCloseMemHandle(memory);
    if (cudaMemset(memory, 2, 5000) != cudaErrorInvalidValue) return "the memory is mapped after its last close";
    reach(*exchange, 2);
    return failure + failed("cudaIpcCloseMemHandle", error);
  });
  for (const std::string& report : processes.reports()) EXPECT_EQ(report, "");
}

void send_file(int socket, int file) {
  char byte = 0;
  iovec part = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &file, sizeof file);
  ::sendmsg(socket, &message, 0);
}

int receive_file(int socket) {
  char byte = 0;
  iovec part = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  int file = -1;
  if (::recvmsg(socket, &message, 0) == 1) std::memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof file);
  return file;
}

// Maps memory at an address of its own, with access for device 0.
std::byte* map(CUmemGenericAllocationHandle handle) {
  CUdeviceptr address = 0;
  CUmemAccessDesc access = {};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  EXPECT_EQ(driver_function<decltype(cuMemAddressReserve)>("cuMemAddressReserve")(&address, kBytes, 0, 0, 0), 0);
  EXPECT_EQ(driver_function<decltype(cuMemMap)>("cuMemMap")(address, kBytes, 0, handle, 0), 0);
  EXPECT_EQ(cudaMemset(reinterpret_cast<void*>(address), 0, 1), cudaErrorInvalidValue) << "without access";
  EXPECT_EQ(driver_function<decltype(cuMemSetAccess)>("cuMemSetAccess")(address, kBytes, &access, 1), 0);
  return reinterpret_cast<std::byte*>(address);
}

std::string unmap(std::byte* memory, CUmemGenericAllocationHandle handle) {
  const auto address = reinterpret_cast<CUdeviceptr>(memory);
  std::string failures;
  failures += failed("cuMemRelease", driver_function<decltype(cuMemRelease)>("cuMemRelease")(handle));
  auto* const free = driver_function<decltype(cuMemAddressFree)>("cuMemAddressFree");
  if (free(address, kBytes) == CUDA_SUCCESS) failures += "mapped addresses were freed";
  failures += failed("cuMemUnmap", driver_function<decltype(cuMemUnmap)>("cuMemUnmap")(address, kBytes));
  return failures + failed("cuMemAddressFree", free(address, kBytes));
}

TEST(PtxProcesses, ShareVirtualMemoryByFile) {
  int sockets[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
  constexpr auto kFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  Processes processes;
  processes.start([&]() -> std::string {
    CUmemAllocationProp wanted = {};
    wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.requestedHandleTypes = kFile;
    wanted.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    CUmemGenericAllocationHandle handle = 0;
    auto* const create = driver_function<decltype(cuMemCreate)>("cuMemCreate");
    if (create(&handle, 100, &wanted, 0) != CUDA_ERROR_INVALID_VALUE) return "a size that is no whole unit";
    if (create(&handle, kBytes, &wanted, 0) != CUDA_SUCCESS) return "cuMemCreate";
    std::byte* memory = map(handle);
    cudaMemset(memory, 3, kBytes);
    cudaDeviceSynchronize();
    int file = -1;
    auto* const to_file = driver_function<decltype(cuMemExportToShareableHandle)>("cuMemExportToShareableHandle");
    if (to_file(&file, handle, kFile, 0) != CUDA_SUCCESS) return "cuMemExportToShareableHandle";
    send_file(sockets[0], file);
    char byte = 0;
    if (::read(sockets[0], &byte, 1) != 1) return "read";
    const std::string failure = read_word(memory + kBytes - 4, 0x04040404);
    return failure + unmap(memory, handle);
  });
  processes.start([&]() -> std::string {
    CUmemGenericAllocationHandle handle = 0;
    const int file = receive_file(sockets[1]);
    auto* const from_file = driver_function<decltype(cuMemImportFromShareableHandle)>("cuMemImportFromShareableHandle");
    if (from_file(&handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(sockets[1])), kFile) == CUDA_SUCCESS)
      return "a socket was imported";
    if (from_file(&handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(file)), kFile) != CUDA_SUCCESS)
      return "cuMemImportFromShareableHandle";
    std::byte* memory = map(handle);
    const std::string failure = read_word(memory, 0x03030303);
    cudaMemset(memory, 4, kBytes);
    cudaDeviceSynchronize();
    if (::write(sockets[1], "", 1) != 1) return "write";
    return failure + unmap(memory, handle);
  });
  for (const std::string& report : processes.reports()) EXPECT_EQ(report, "");
  for (const int socket : sockets) ::close(socket);
}

TEST(PtxProcesses, RefuseCudaInChild_AfterFork) {
  Processes parent;
  parent.start([]() -> std::string {
    if (cudaFree(nullptr) != cudaSuccess) return "cudaFree";
    Processes child;
    child.start([]() -> std::string { return std::to_string(cudaFree(nullptr)); });
    return child.report(0);
  });
  EXPECT_EQ(parent.report(0), std::to_string(cudaErrorInitializationError));
}

}  // namespace
}  // namespace tutti::test
