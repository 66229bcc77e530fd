// Every collective with every type and reduction between ranks on a device, in threads or processes. The calls use each
// supported algorithm and protocol in turn.
#include <bit>
#include <thread>

#include "algorithms/catalogue.h"
#include "src/tuner/choose.h"
#include "tests/base/case_sampling.h"
#include "tests/communicator/device/device_processes.h"
#include "tests/communicator/device/typed_part.h"

namespace tutti::test {
namespace {

// On the emulator the test runs one of this many calls, since waits take long on a busy machine. Runs with 2, 4 and 8
// ranks select different calls. Without sanitizers they cover every type and reduction together, and so do samples.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint32_t kSampleShare = 6;
#else
constexpr std::uint32_t kSampleShare = 3;
#endif

constexpr Rank kRankCounts[] = {1, 2, 4, 8};
constexpr std::size_t kBatch = 6;  // Calls of a rank in flight.
constexpr std::size_t kMaxElements = 5000;
constexpr std::size_t kMemoryBytes = 2 * kBatch * 8 * (kMaxElements + 2) * size_of(DataType::complex128);

struct SweepCall {
  TypedShape shape;
  std::string_view algorithm, protocol;  // Empty: the tuner's choice.
};

// Assigns algorithms to the calls of a collective in turn, and the next protocol after all algorithms.
class Turns {
 public:
  Turns(Collective collective, Rank ranks, bool in_one_process, std::uint32_t first) : turn_(first) {
    for (const Algorithm* algorithm : catalogue(collective)) {
      const bool staged = std::string_view(algorithm->name()).ends_with("_staged");
      if ((accesses_peers(algorithm->name()) && (staged == in_one_process || over_network())) ||
          !algorithm->supports({.collective = collective, .ranks = ranks, .groups = {}}))
        continue;
      algorithms_.push_back(algorithm->name());
    }
    if (over_network()) {
      protocols_.emplace_back("Simple");
    } else {
      protocols_.insert(protocols_.end(), std::begin(kProtocols), std::end(kProtocols));
    }
  }
  void take(SweepCall& call) {
    call.algorithm = algorithms_[turn_ % algorithms_.size()];
    call.protocol = protocols_[turn_ / algorithms_.size() % protocols_.size()];
    ++turn_;
    const bool knows_factors = call.shape.reduction != Reduction::pre_mul_sum;
    if (!knows_factors && call.algorithm.ends_with("_mapped")) call.algorithm = "";
  }

 private:
  std::vector<std::string_view> algorithms_ = {""}, protocols_ = {""};
  std::uint32_t turn_;
};

enum class Live : std::uint8_t { in_one_process, in_processes };

// Size of the sweep: one of `share` calls in each of `passes`, which use different algorithms and protocols.
struct Extent {
  std::uint32_t passes, share;
};

bool is_gpu(const DeviceKind& kind) { return std::string_view(kind.name) == "cuda"; }

// Returns the calls of the sweep, which are the same on every rank.
std::vector<SweepCall> sweep_calls(Rank ranks, Live live, Extent extent) {
  std::mt19937_64 random(kSeed);
  std::vector<SweepCall> calls;
  for (std::uint32_t i = 0; i < extent.passes * kCollectives; ++i) {
    const auto collective = static_cast<Collective>(i % kCollectives);
    Turns turns(collective, ranks, live == Live::in_one_process, static_cast<std::uint32_t>(random() % 1000));
    for (std::uint32_t k = 0; k < kDataTypes * (reduces(collective) ? kReductions : 1); ++k) {
      SweepCall call;
      call.shape.type = static_cast<DataType>(k % kDataTypes);
      call.shape.reduction = static_cast<Reduction>(k / kDataTypes);
      if (!thread_block_supports(call.shape.type, call.shape.reduction)) continue;
      call.shape.shape.problem = {.collective = collective, .ranks = ranks, .groups = {}};
      if (has_root(collective)) call.shape.shape.problem.root = static_cast<Rank>(random() % ranks);
      call.shape.shape.count = 1 + random() % (random() % 16 == 0 ? kMaxElements : 300);
      call.shape.shape.turn = i * kDataTypes * kReductions + k;
      turns.take(call);
      if ((k + std::bit_width(ranks)) % extent.share == 0) calls.push_back(call);
    }
  }
  return calls;
}

std::string run_batch(DeviceRanks& own, Rank index, Rank rank, std::span<const SweepCall> calls, TypedMemory& memory) {
  const auto reported = [&](const SweepCall& call, const std::string& what) {
    return what + ", algorithm '" + std::string(call.algorithm) + "', protocol '" + std::string(call.protocol) +
           "', seed " + std::to_string(kSeed);
  };
  memory.begin_anew();
  std::vector<TypedPart> parts;
  for (const SweepCall& call : calls) {
    parts.emplace_back(memory, rank, call.shape, (call.shape.shape.turn + rank) % 2 == 0);
    DeviceCall made = own.call(index, parts.back().call());
    made.options.algorithm = call.algorithm;
    made.options.protocol = call.protocol;
    made.options.update_agreement_hash();
    const Status status = enqueue({&made, 1});
    if (!status.ok()) return reported(call, describe(call.shape.shape.problem) + ": " + status.message());
  }
  const Status status = own.rig().synchronize(own.stream(index));
  if (!status.ok()) return status.message();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string error = parts[i].error();
    if (!error.empty()) return reported(calls[i], error);
  }
  return "";
}

// Runs all calls of a rank; `index` is its index in `own`. Returns "right" or an error.
std::string run_sweep(DeviceRanks& own, Rank index, Rank rank, std::span<const SweepCall> calls, TypedMemory& memory) {
  for (std::size_t done = 0; done < calls.size(); done += kBatch) {
    const auto batch = calls.subspan(done, std::min(kBatch, calls.size() - done));
    std::string error = run_batch(own, index, rank, batch, memory);
    if (error.empty()) continue;
    (void)own[index].fail(internal_error(error));  // Ends the waits of the other ranks.
    return error;
  }
  return "right";
}

class SweepOfThreads : public OnDevices {};

TEST_P(SweepOfThreads, ComputesCorrectBits) {
  const Extent extent = is_gpu(GetParam()) && requested_sample() == 0 ? Extent{6, 1} : Extent{1, kSampleShare};
  for (const Rank n : kRankCounts) {
    DeviceRanks ranks(*rig_, n);
    const std::vector<SweepCall> calls = sweep_calls(n, Live::in_one_process, extent);
    std::vector<TypedMemory> memory;
    for (Rank rank = 0; rank < n; ++rank) memory.emplace_back(ranks, kMemoryBytes);
    std::vector<std::string> reports(n);
    std::vector<std::thread> threads;
    for (Rank rank = 0; rank < n; ++rank)
      threads.emplace_back([&, rank] { reports[rank] = run_sweep(ranks, rank, rank, calls, memory[rank]); });
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(reports, std::vector<std::string>(n, "right"));
  }
}

TEST_P(SweepOfThreads, RefusesProductsOfComplexNumbers) {
  DeviceRanks ranks(*rig_, 1);
  TypedMemory memory(ranks, 1024);
  TypedShape shape = {.shape = {}, .type = DataType::complex64, .reduction = Reduction::prod};
  shape.shape.problem = {.collective = Collective::all_reduce, .ranks = 1, .groups = {}};
  shape.shape.count = 3;
  const TypedPart part(memory, 0, shape, true);
  DeviceCall call = ranks.call(0, part.call());
  const Status refused = enqueue({&call, 1});
  EXPECT_EQ(refused.code(), Code::unsupported);
  EXPECT_NE(refused.message().find("prod of complex64 is not available on GPUs"), std::string::npos)
      << refused.message();
  call.call.reduction = Reduction::sum;
  EXPECT_TRUE(enqueue({&call, 1}).ok());
  EXPECT_TRUE(rig_->synchronize(ranks.stream(0)).ok());
}

INSTANTIATE_TEST_SUITE_P(All, SweepOfThreads, testing::ValuesIn(device_kinds()), kind_of);

class SweepOfProcesses : public DevicesOfProcesses {};

// On a GPU without MPS, processes are time-sliced and each call takes about 100 times as long. The sweep is smaller
// there.
TEST_P(SweepOfProcesses, ComputesCorrectBits) {
  const Extent extent = is_gpu(GetParam()) ? Extent{1, 8} : Extent{1, kSampleShare};
  for (const Rank n : kRankCounts) {
    DeviceProcessGroup processes;
    const auto work = [&](DeviceRanks& own, Rank rank) {
      TypedMemory memory(own, kMemoryBytes);
      return run_sweep(own, 0, rank, sweep_calls(n, Live::in_processes, extent), memory);
    };
    for (Rank rank = 0; rank < n; ++rank) processes.start(GetParam().make, rank, 1, n, work);
    processes.expect_reports("right");
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(All, SweepOfProcesses, testing::ValuesIn(device_kinds()), kind_of);

}  // namespace
}  // namespace tutti::test
