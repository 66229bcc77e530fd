// Compressed calls on devices, in every format. Results have the same bits as on host memory with the same algorithm.
#include <cstring>
#include <thread>

#include "algorithms/catalogue.h"
#include "src/compression/format.h"
#include "tests/base/case_sampling.h"
#include "tests/communicator/device/part.h"
#include "tests/executor/elements.h"

namespace tutti::test {
namespace {

constexpr DataType kTypes[] = {DataType::float32, DataType::float16, DataType::bfloat16};

CommunicatorOptions sending(std::string_view compression, std::string_view algorithm = "",
                            std::string_view protocol = "") {
  CommunicatorOptions options = over_transport();
  options.timeout_ms = 60'000;
  options.compression = compression;
  options.algorithm = algorithm;
  options.protocol = protocol;
  options.update_agreement_hash();
  return options;
}

struct CompressedCall {
  Problem problem;
  DataType type = DataType::float32;
  Reduction reduction = Reduction::sum;
  std::uint64_t count = 0;
  bool in_place = false;
  bool feeds_back = false;
  CommunicatorOptions options;
};

std::string describe(const CompressedCall& call) {
  return tutti::describe(call.problem) + " by '" + call.options.algorithm + "', " + name(call.reduction) + " of " +
         std::to_string(call.count) + " " + name(call.type) + " in " + call.options.compression +
         (call.in_place ? ", in place" : "") + (call.feeds_back ? ", with residuals" : "") +
         (call.options.compression_rounding.rounding == Rounding::stochastic ? ", at random" : "");
}

// Call and buffers of one rank, in memory of the host or of the device.
class CompressedPart {
 public:
  CompressedPart(const CompressedCall& call, Rank rank, std::byte* memory) : call_(call), rank_(rank), memory_(memory) {
    const std::uint64_t block = call.count * size_of(call.type);
    input_bytes_ = input_blocks(call.problem, rank) * block;
    output_bytes_ = output_blocks(call.problem, rank) * block;
    const bool both = call.in_place && input_bytes_ > 0 && output_bytes_ > 0;
    const std::int64_t shift = both ? in_place_shift(call.problem, rank) * static_cast<std::int64_t>(block) : 0;
    input_ = memory + (shift > 0 ? shift : 0);
    output_ = both ? input_ - shift : memory + input_bytes_;
    std::memset(memory, 0, bytes(call));
    std::mt19937_64 random(call.count * 64 + rank);
    std::normal_distribution<float> normal;
    for (std::uint64_t i = 0; i < input_bytes_ / size_of(call.type); ++i) put(i, normal(random));
    residual_ = reinterpret_cast<float*>(memory + (bytes(call) - residual_bytes(call)));
    for (std::uint64_t i = 0; i < input_bytes_ / size_of(call.type); ++i) residual_[i] = 0.01F * normal(random);
  }
  static std::uint64_t bytes(const CompressedCall& call) {
    const std::uint64_t buffers = (std::uint64_t{2} * call.problem.ranks + 1) * call.count * size_of(call.type);
    return (buffers + sizeof(float) - 1) / sizeof(float) * sizeof(float) + residual_bytes(call);
  }

  Call call() const {
    Call made = call_of(call_.problem.collective, call_.type, call_.count, input_, output_);
    made.root = call_.problem.root;
    made.reduction = call_.reduction;
    made.scalar = 1.0 + rank_;
    if (call_.feeds_back) made.residual = residual_;
    return made;
  }
  // Returns whether outputs and residuals have the same bits.
  bool operator==(const CompressedPart& other) const {
    return std::memcmp(output_, other.output_, output_bytes_) == 0 &&
           std::memcmp(residual_, other.residual_, input_bytes_ / size_of(call_.type) * sizeof(float)) == 0;
  }

 private:
  static std::uint64_t residual_bytes(const CompressedCall& call) {
    return call.problem.ranks * call.count * sizeof(float);
  }
  void put(std::uint64_t i, float value) {
    const std::uint16_t half =
        call_.type == DataType::float16 ? from_float<Float16>(value).bits : from_float<BFloat16>(value).bits;
    if (call_.type == DataType::float32) std::memcpy(input_ + i * sizeof value, &value, sizeof value);
    if (call_.type != DataType::float32) std::memcpy(input_ + i * sizeof half, &half, sizeof half);
  }

  CompressedCall call_;
  Rank rank_;
  std::byte *memory_, *input_, *output_;
  float* residual_;
  std::uint64_t input_bytes_, output_bytes_;
};

// Returns calls of all algorithms that support compression. Formats, types, reductions, lengths and buffer modes vary
// in turn or at random.
std::vector<CompressedCall> compressed_calls(Rank ranks, std::mt19937_64& random) {
  std::vector<CompressedCall> calls;
  std::uint32_t turns = 0;
  for (std::uint32_t c = 0; c < kCollectives; ++c) {
    Problem problem{.collective = static_cast<Collective>(c), .ranks = ranks, .groups = {}};
    if (has_root(problem.collective)) problem.root = static_cast<Rank>(random() % ranks);
    for (const Algorithm* algorithm : catalogue(problem.collective)) {
      const bool mapped = accesses_peers(algorithm->name());
      if (mapped || !algorithm->supports(problem) || !algorithm->supports_compression(problem)) continue;
      // Takes a third of the formats. Other numbers of ranks take the others.
      for (std::uint32_t f = 1 + (ranks + turns++) % 3; f < kCompressionFormats; f += 3) {
        const char* compression = name(static_cast<CompressionFormat>(f));
        const std::uint64_t counts[] = {70 + random() % 100, 500 + random() % 5000, 90'000 + random() % 9000};
        const auto turn = static_cast<std::uint32_t>(random() % 36);
        calls.push_back({.problem = problem,
                         .type = kTypes[turn % 3],
                         .reduction = kFloatReductions[turn / 3 % std::size(kFloatReductions)],
                         .count = counts[f % 4 == 0 && ranks < 4 ? 2 : f % 2],
                         .in_place = turn >= 18,
                         .options = sending(compression, algorithm->name())});
        CompressedCall& call = calls.back();
        const bool sums = call.reduction == Reduction::sum || call.reduction == Reduction::avg;
        call.feeds_back = reduces(problem.collective) && sums && random() % 3 != 0;
        if (random() % 2 == 0) call.options.compression_rounding = {Rounding::stochastic, random()};
      }
    }
  }
  return calls;
}

class DeviceCompression : public OnDevices {
 protected:
  std::string run(Communicators& hosts, DeviceRanks& ranks, const CompressedCall& call) {
    std::vector<std::vector<std::byte>> memory(ranks.size(), std::vector<std::byte>(CompressedPart::bytes(call)));
    std::vector<CompressedPart> wanted, found;
    for (Rank rank = 0; rank < ranks.size(); ++rank) {
      wanted.emplace_back(call, rank, memory[rank].data());
      found.emplace_back(call, rank, memory_[rank]);
    }
    const std::string by_hosts = on_hosts(hosts, wanted, call);
    if (!by_hosts.empty()) return "on host memory: " + by_hosts;
    const Status status = enqueue(device_calls(ranks, found, call));
    if (!status.ok()) return status.message();
    ranks.synchronize();
    const LastRun on_host = hosts[0]->last_run(), ran = ranks[0].last_run();
    if (std::strcmp(ran.compression, on_host.compression) != 0 || ran.error != on_host.error)
      return std::string("went in ") + ran.compression + ", and on host memory in " + on_host.compression;
    for (Rank rank = 0; rank < ranks.size(); ++rank)
      if (!(found[rank] == wanted[rank])) return "rank " + std::to_string(rank) + " has other bits than on host memory";
    return "";
  }

  static std::vector<DeviceCall> device_calls(DeviceRanks& ranks, const std::vector<CompressedPart>& parts,
                                              const CompressedCall& call) {
    std::vector<DeviceCall> calls;
    for (Rank rank = 0; rank < ranks.size(); ++rank) {
      calls.push_back(ranks.call(rank, parts[rank].call()));
      calls.back().options = call.options;
      calls.back().options.timeout_ms = test_timeout_ms(ranks.rig(), call.options.timeout_ms);
    }
    return calls;
  }

  static std::string on_hosts(Communicators& hosts, const std::vector<CompressedPart>& parts,
                              const CompressedCall& call) {
    std::vector<Status> statuses(hosts.size());
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
      threads.emplace_back([&, rank] { statuses[rank] = hosts[rank]->run(parts[rank].call(), &call.options); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Status& status : statuses)
      if (!status.ok()) return status.message();
    return "";
  }

  // Allocates enough memory for the largest call on each rank.
  void take_memory(DeviceRanks& ranks) {
    memory_.clear();
    for (Rank rank = 0; rank < ranks.size(); ++rank)
      memory_.push_back(ranks.take<std::byte>(std::size_t{14} * 100'000 * sizeof(float)));
  }

  std::vector<std::byte*> memory_;
  std::mt19937_64 random_{kSeed};
};

TEST_P(DeviceCompression, MatchesHostMemoryBits) {
  OneOf cases(5);
  for (const Rank n : {2U, 3U, 4U}) {
    Communicators hosts = std::move(Communicator::create_all(n, sending("raw"))).value();
    DeviceRanks ranks(*rig_, n);
    take_memory(ranks);
    for (const CompressedCall& call : compressed_calls(n, random_)) {
      if (!cases.takes()) continue;
      ASSERT_EQ(run(hosts, ranks, call), "") << describe(call) << ", seed " << kSeed;
    }
  }
}

// One group has compressed calls of one communicator and uncompressed calls of another. Results of both must be
// correct, although the thread launches them one after the other.
TEST_P(DeviceCompression, MixesWithUncompressedCalls) {
  constexpr Rank kRanks = 2;
  Communicators hosts = std::move(Communicator::create_all(kRanks, sending("raw"))).value();
  DeviceRanks ranks(*rig_, kRanks), others(*rig_, kRanks);
  take_memory(ranks);
  for (const std::uint64_t count : {200U, 30'000U}) {
    for (const char* compression : {"int8", "bf16"}) {
      CompressedCall call{.problem = {.collective = Collective::all_reduce, .ranks = kRanks, .groups = {}},
                          .count = count,
                          .options = sending(compression)};
      std::vector<std::vector<std::byte>> memory(kRanks, std::vector<std::byte>(CompressedPart::bytes(call)));
      std::vector<CompressedPart> wanted, found;
      std::vector<Part> raw;
      for (Rank rank = 0; rank < kRanks; ++rank) {
        wanted.emplace_back(call, rank, memory[rank].data());
        found.emplace_back(call, rank, memory_[rank]);
        raw.emplace_back(others, rank, CallShape{call.problem, count, 0}, false);
      }
      std::vector<DeviceCall> calls = device_calls(ranks, found, call);
      for (Rank rank = 0; rank < kRanks; ++rank) calls.push_back(others.call(rank, raw[rank].call()));
      const Status status = enqueue(calls);
      ASSERT_TRUE(status.ok()) << status.message();
      ranks.synchronize();
      others.synchronize();
      EXPECT_STREQ(ranks[0].last_run().compression, compression);
      EXPECT_STREQ(others[0].last_run().compression, "raw");
      call.options = sending(compression, ranks[0].last_run().algorithm);
      ASSERT_EQ(on_hosts(hosts, wanted, call), "");
      for (Rank rank = 0; rank < kRanks; ++rank) {
        EXPECT_TRUE(found[rank] == wanted[rank]) << compression << " " << count;
        raw[rank].expect_right();
      }
    }
  }
}

TEST_P(DeviceCompression, RejectsUnsupportedCalls) {
  DeviceRanks ranks(*rig_, 2);
  take_memory(ranks);
  const auto refused = [&](const CommunicatorOptions& options) {
    const CompressedCall call{
        .problem = {.collective = Collective::all_reduce, .ranks = 2, .groups = {}}, .count = 5000, .options = options};
    const std::vector<CompressedPart> parts = {{call, 0, memory_[0]}, {call, 1, memory_[1]}};
    const Status status = enqueue(device_calls(ranks, parts, call));
    EXPECT_EQ(status.code(), Code::unsupported);
    return status.message();
  };
  for (const char* algorithm : {"one_shot", "recursive_doubling", "two_shot_mapped"}) {
    const std::string words = refused(sending("int8", algorithm));
    EXPECT_NE(words.find(std::string("'") + algorithm + "' with compression format int8: "), std::string::npos)
        << words;
  }
  for (const char* protocol : {"LL", "LL128"}) {
    const std::string words = refused(sending("int8", "", protocol));
    EXPECT_NE(words.find(std::string("'") + protocol + "' does not support compression format int8"), std::string::npos)
        << words;
  }
  ranks.synchronize();
}

// Rank 0 requests raw messages and rank 1 int8. The error must name the settings that must match. One thread runs both
// ranks, so the mismatch is detected before any call is launched.
TEST_P(DeviceCompression, MustMatchOnAllRanks) {
  DeviceRanks ranks(*rig_, 2);
  take_memory(ranks);
  std::vector<DeviceCall> calls;
  for (Rank rank = 0; rank < 2; ++rank) {
    const CompressedCall call{.problem = {.collective = Collective::all_reduce, .ranks = 2, .groups = {}},
                              .count = 5000,
                              .options = sending(rank == 0 ? "raw" : "int8")};
    const CompressedPart part(call, rank, memory_[rank]);
    calls.push_back(ranks.call(rank, part.call()));
    calls.back().options = call.options;
  }
  if (ranks.backend(0).peers().time_sliced()) GTEST_SKIP() << "time-sliced ranks are launched each by itself";
  const Status status = enqueue(calls);
  EXPECT_EQ(status.code(), Code::invalid_usage);
  for (const char* source : {"options.compression", "TUTTI_NCCL_COMPRESS;", "options.max_relative_error",
                             "TUTTI_MAX_RELATIVE_ERROR", "TUTTI_NCCL_COMPRESS_MAX_RELATIVE_ERROR"})
    EXPECT_NE(status.message().find(source), std::string::npos) << status.message();
  ranks.synchronize();
}

INSTANTIATE_TEST_SUITE_P(All, DeviceCompression, testing::ValuesIn(shared_device_kinds()), kind_of);

}  // namespace
}  // namespace tutti::test
