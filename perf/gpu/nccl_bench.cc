// nccl_bench LIBRARY RANKS FILE.json: measures all-reduces between ranks of one process that share a GPU, by a library
// with NCCL's ABI. One thread runs the ranks in groups; each rank has its own stream. The program loads NCCL or Tutti's
// libnccl.so.2.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "perf/gpu/competitors.h"
#include "perf/gpu/timer.h"
#include "perf/tool/fail.h"
#include "perf/tool/json.h"

namespace perf {
namespace {

// Declarations of NCCL's ABI that this program uses.
struct UniqueId {
  char bytes[128];
};
using Comm = void*;
constexpr int kFloat32 = 7, kSum = 0;

class Library {
 public:
  explicit Library(const char* path) : handle_(::dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) fail("%s", ::dlerror());
    find(version, "ncclGetVersion");
    find(words, "ncclGetErrorString");
    find(unique_id, "ncclGetUniqueId");
    find(init, "ncclCommInitRank");
    find(destroy, "ncclCommDestroy");
    find(group_start, "ncclGroupStart");
    find(group_end, "ncclGroupEnd");
    find(all_reduce, "ncclAllReduce");
    find(async_error, "ncclCommGetAsyncError");
  }
  void require(int result, const char* call) const {
    if (result != 0) fail("%s: %s", call, words(result));
  }

  int (*version)(int*);
  const char* (*words)(int);
  int (*unique_id)(UniqueId*);
  int (*init)(Comm*, int, UniqueId, int);
  int (*destroy)(Comm);
  int (*group_start)();
  int (*group_end)();
  int (*all_reduce)(const void*, void*, std::size_t, int, int, Comm, cudaStream_t);
  int (*async_error)(Comm, int*);

 private:
  template <typename Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(handle_, name));
    if (function == nullptr) fail("%s", ::dlerror());
  }
  void* handle_;
};

class Ranks final : public Competitor {
 public:
  Ranks(const Library& library, const Buffers& buffers) : library_(library), buffers_(buffers) {
    const auto ranks = static_cast<std::size_t>(buffers.ranks());
    comms_.resize(ranks);
    streams_.resize(ranks);
    joins_.resize(ranks);
    check(cudaEventCreateWithFlags(&fork_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    UniqueId id;
    library_.require(library_.unique_id(&id), "ncclGetUniqueId");
    library_.require(library_.group_start(), "ncclGroupStart");
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      check(cudaStreamCreateWithFlags(&streams_[rank], cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
      check(cudaEventCreateWithFlags(&joins_[rank], cudaEventDisableTiming), "cudaEventCreateWithFlags");
      library_.require(library_.init(&comms_[rank], buffers.ranks(), id, static_cast<int>(rank)), "ncclCommInitRank");
    }
    library_.require(library_.group_end(), "ncclCommInitRank");
  }
  ~Ranks() override {
    library_.require(library_.group_start(), "ncclGroupStart");
    for (Comm comm : comms_) library_.require(library_.destroy(comm), "ncclCommDestroy");
    library_.require(library_.group_end(), "ncclCommDestroy");
    for (cudaEvent_t event : joins_) cudaEventDestroy(event);
    for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
    cudaEventDestroy(fork_);
  }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  void enqueue(std::size_t count, cudaStream_t stream) override {
    check(cudaEventRecord(fork_, stream), "cudaEventRecord");
    library_.require(library_.group_start(), "ncclGroupStart");
    for (std::size_t rank = 0; rank < comms_.size(); ++rank) {
      check(cudaStreamWaitEvent(streams_[rank], fork_, 0), "cudaStreamWaitEvent");
      library_.require(
          library_.all_reduce(buffers_.input(static_cast<int>(rank)), buffers_.output(static_cast<int>(rank)), count,
                              kFloat32, kSum, comms_[rank], streams_[rank]),
          "ncclAllReduce");
    }
    library_.require(library_.group_end(), "ncclAllReduce");
    for (std::size_t rank = 0; rank < comms_.size(); ++rank) {
      check(cudaEventRecord(joins_[rank], streams_[rank]), "cudaEventRecord");
      check(cudaStreamWaitEvent(stream, joins_[rank], 0), "cudaStreamWaitEvent");
    }
  }
  void settled() override {
    for (Comm comm : comms_) {
      int error = 0;
      library_.require(library_.async_error(comm, &error), "ncclCommGetAsyncError");
      library_.require(error, "ncclAllReduce");
    }
  }

 private:
  const Library& library_;
  const Buffers& buffers_;
  std::vector<Comm> comms_;
  std::vector<cudaStream_t> streams_;
  cudaEvent_t fork_ = nullptr;
  std::vector<cudaEvent_t> joins_;
};

// Measures all sizes. Returns the number of wrong elements.
std::uint64_t measure(const Library& library, int ranks, Json& json) {
  constexpr std::size_t kMax = std::size_t{1} << 30;
  const Timer timer;
  Buffers buffers(ranks, kMax, timer.stream());
  Ranks competitor(library, buffers);
  std::uint64_t wrong = 0;
  json.open("rows", '[');
  for (std::size_t bytes = 8; bytes <= kMax; bytes *= 8) {
    const std::size_t count = bytes / sizeof(float);
    buffers.spoil(count, timer.stream());
    competitor.enqueue(count, timer.stream());
    timer.synchronize();
    competitor.settled();
    wrong += buffers.wrong(count, timer.stream());
    const double us = timer.eager_us([&](cudaStream_t stream) { competitor.enqueue(count, stream); });
    competitor.settled();
    json.open(nullptr, '{');
    json.field("bytes", std::uint64_t{bytes});
    json.field("us", us);
    json.close('}');
  }
  json.close(']');
  return wrong;
}

bool run(const char* path, int ranks, const char* file) {
  const Library library(path);
  int version = 0;
  library.require(library.version(&version), "ncclGetVersion");
  Json json{std::string(file)};
  json.open(nullptr, '{');
  json.field("version", static_cast<std::uint64_t>(version));
  json.field("ranks", static_cast<std::uint64_t>(ranks));
  const std::uint64_t wrong = measure(library, ranks, json);
  json.field("wrong", wrong);
  json.close('}');
  if (!json.finish()) fail("writing the results failed");
  if (wrong > 0) std::fprintf(stderr, "%llu elements are wrong\n", static_cast<unsigned long long>(wrong));
  return wrong == 0;
}

}  // namespace
}  // namespace perf

int main(int argc, char** argv) {
  perf::set_program_name(argv[0]);
  // Kernels in different streams wait for each other, so each needs a hardware queue, and none may be loaded while
  // another waits. CUDA reads these variables when it starts.
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  const int ranks = argc == 4 ? std::atoi(argv[2]) : 0;
  if (ranks < 1 || ranks > 8) perf::fail("usage: nccl_bench LIBRARY RANKS FILE.json, with 1 to 8 ranks");
  int gpus = 0;
  const cudaError_t error = cudaGetDeviceCount(&gpus);
  if (error != cudaSuccess || gpus == 0) perf::fail("no GPU is available: %s", cudaGetErrorString(error));
  return perf::run(argv[1], ranks, argv[3]) ? 0 : 1;
}
