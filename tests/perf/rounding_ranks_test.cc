// Ranks in one thread end with the same bits as communicators, so the errors measured on them are representative.
#include <gtest/gtest.h>

#include "algorithms/catalogue.h"
#include "perf/rounding/exact.h"
#include "perf/rounding/serial_ranks.h"
#include "tests/communicator/ranks.h"

namespace tutti::test {
namespace {

using namespace rounding;

constexpr Rank kRanks = 4;
constexpr std::uint64_t kCount = 70 * kCompressionGroup;
constexpr DataType kTypes[] = {DataType::float32, DataType::float16, DataType::bfloat16};

using Outputs = std::vector<std::vector<std::byte>>;

Outputs outputs_of(DataType type) { return Outputs(kRanks, std::vector<std::byte>(kCount * size_of(type))); }

Outputs by_communicators(Communicators& ranks, Exact& exact, const TensorFormat& tensor, const Algorithm& algorithm) {
  CommunicatorOptions options;
  options.timeout_ms = 60'000;
  options.compression = name(tensor.format);
  options.algorithm = algorithm.name();
  options.update_agreement_hash();
  Outputs outputs = outputs_of(tensor.type);
  const std::vector<Status> statuses = on_all(ranks, [&](Communicator& communicator) {
    const Rank rank = communicator.rank();
    Call call;
    call.collective = Collective::all_reduce;
    call.type = tensor.type;
    call.count = kCount;
    call.input = exact.input(rank);
    call.output = outputs[rank].data();
    return communicator.run(call, &options);
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_STREQ(ranks[0]->last_run().compression, name(tensor.format));
  return outputs;
}

Outputs by_serial_ranks(Exact& exact, const Problem& problem, const TensorFormat& tensor, const Algorithm& algorithm) {
  Outputs outputs = outputs_of(tensor.type);
  std::vector<RankBuffers> buffers;
  for (Rank rank = 0; rank < kRanks; ++rank) buffers.push_back({exact.input(rank), outputs[rank].data()});
  const Status status = SerialRanks(algorithm, problem, kCount).run(tensor, buffers, {.chunks = 3});
  EXPECT_TRUE(status.ok()) << status.message();
  return outputs;
}

TEST(RoundingRanks, MatchBitsOfCommunicators) {
  Communicators ranks = make_ranks(kRanks);
  const Problem problem = {.collective = Collective::all_reduce, .ranks = kRanks, .groups = {}};
  for (const DataType type : kTypes) {
    Exact exact(problem, {.data = Data::student, .type = type, .ranks = kRanks}, kCount);
    for (const Algorithm* algorithm : catalogue(Collective::all_reduce)) {
      const bool mapped = accesses_peers(algorithm->name());
      if (mapped || !algorithm->supports(problem) || !algorithm->supports_compression(problem)) continue;
      for (std::uint32_t f = 1; f < kCompressionFormats; ++f) {
        const TensorFormat tensor = {static_cast<CompressionFormat>(f), type};
        if (compressed_bytes(tensor.format) >= kCompressionGroup * size_of(type)) continue;
        SCOPED_TRACE(std::string(algorithm->name()) + ", " + name(type) + " as " + name(tensor.format));
        EXPECT_EQ(by_serial_ranks(exact, problem, tensor, *algorithm),
                  by_communicators(ranks, exact, tensor, *algorithm));
      }
    }
  }
}

}  // namespace
}  // namespace tutti::test
