#include "perf/gpu/competitors.h"

#include "perf/tool/fail.h"

namespace perf {
namespace {

// Returns zeroed memory. Synchronizes the device, because non-blocking streams do not wait for cudaMemset's default
// stream.
template <typename T>
T* allocate(std::size_t count) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, count * sizeof(T)), "cudaMalloc");
  check(cudaMemset(memory, 0, count * sizeof(T)), "cudaMemset");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  return static_cast<T*>(memory);
}

class Tutti final : public Competitor {
 public:
  Tutti(const Buffers& buffers, const std::string& algorithm)
      : buffers_(buffers), comms_(static_cast<std::size_t>(buffers.ranks())) {
    tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
    options.memory = "cuda";
    tutti_tuning_options tuning = TUTTI_TUNING_OPTIONS_DEFAULT;
    tuning.algorithm = algorithm.c_str();  // "": none is forced.
    options.tuning = &tuning;
    require(tutti_comm_create_all(buffers.ranks(), &options, comms_.data()), "tutti_comm_create_all");
  }
  ~Tutti() override {
    require(tutti_group_start(), "tutti_group_start");
    for (tutti_comm comm : comms_) require(tutti_comm_destroy(comm), "tutti_comm_destroy");
    require(tutti_group_end(), "tutti_comm_destroy");
  }
  Tutti(const Tutti&) = delete;
  Tutti& operator=(const Tutti&) = delete;

  void enqueue(std::size_t count, cudaStream_t stream) override {
    require(tutti_group_start(), "tutti_group_start");
    for (int rank = 0; rank < buffers_.ranks(); ++rank) {
      require(tutti_all_reduce(buffers_.input(rank), buffers_.output(rank), count, tutti_float32, tutti_sum,
                               comms_[static_cast<std::size_t>(rank)], reinterpret_cast<tutti_stream>(stream)),
              "tutti_all_reduce");
    }
    require(tutti_group_end(), "tutti_all_reduce");
  }
  void settled() override {
    for (tutti_comm comm : comms_) {
      tutti_status error = tutti_ok;
      require(tutti_comm_async_error(comm, &error), "tutti_comm_async_error");
      if (error != tutti_ok) fail("tutti_all_reduce: %s: %s", tutti_status_name(error), tutti_last_error(comm));
    }
  }

 private:
  const Buffers& buffers_;
  std::vector<tutti_comm> comms_;
};

class ByHand final : public Competitor {
 public:
  ByHand(const Buffers& buffers, int blocks) {
    call_.ranks = buffers.ranks();
    call_.blocks = blocks;
    for (int rank = 0; rank < call_.ranks; ++rank) {
      call_.inputs[rank] = buffers.input(rank);
      call_.outputs[rank] = buffers.output(rank);
    }
    const auto thread_blocks = static_cast<std::size_t>(call_.ranks) * static_cast<std::size_t>(blocks);
    call_.flags = allocate<std::uint32_t>(thread_blocks * kMaxRanks);
    call_.epochs = allocate<std::uint32_t>(thread_blocks);
  }
  ~ByHand() override {
    cudaFree(call_.flags);
    cudaFree(call_.epochs);
  }
  ByHand(const ByHand&) = delete;
  ByHand& operator=(const ByHand&) = delete;

  void enqueue(std::size_t count, cudaStream_t stream) override {
    call_.count = count;
    two_shot(call_, stream);
  }

 private:
  TwoShot call_ = {};
};

}  // namespace

Buffers::Buffers(int ranks, std::size_t bytes, cudaStream_t stream) {
  const std::size_t count = bytes / sizeof(float);
  for (int rank = 0; rank < ranks; ++rank) {
    inputs_.push_back(allocate<float>(count));
    outputs_.push_back(allocate<float>(count));
    fill(inputs_.back(), rank, count, stream);
  }
  wrong_ = allocate<std::uint64_t>(1);
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

Buffers::~Buffers() {
  for (const std::vector<float*>* all : {&inputs_, &outputs_}) {
    for (float* memory : *all) cudaFree(memory);
  }
  cudaFree(wrong_);
}

void Buffers::spoil(std::size_t count, cudaStream_t stream) {
  for (float* output : outputs_) check(cudaMemsetAsync(output, 0xff, count * sizeof(float), stream), "cudaMemsetAsync");
}

std::uint64_t Buffers::wrong(std::size_t count, cudaStream_t stream) {
  check(cudaMemsetAsync(wrong_, 0, sizeof *wrong_, stream), "cudaMemsetAsync");
  for (const float* output : outputs_) count_wrong(output, ranks(), count, wrong_, stream);
  std::uint64_t wrong = 0;
  check(cudaMemcpyAsync(&wrong, wrong_, sizeof wrong, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  return wrong;
}

std::unique_ptr<Competitor> tutti_all_reduces(const Buffers& buffers, const std::string& algorithm) {
  return std::make_unique<Tutti>(buffers, algorithm);
}

std::unique_ptr<Competitor> by_hand(const Buffers& buffers, int blocks) {
  return std::make_unique<ByHand>(buffers, blocks);
}

}  // namespace perf
