// Calls that the environment variables compress. Sums of the values are exact without compression, and none is exact in
// int4.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <map>
#include <memory>

#include "src/communicator/joining/settings.h"
#include "tests/nccl/clients.h"

namespace tutti::test {
namespace {

constexpr int kRanks = 3;
constexpr std::size_t kMany = 65'536;  // The number of float32 elements from which calls are compressed.
using Variables = std::map<std::string, std::string>;

// Sets variables during its lifetime; communicators read them when they are created.
class InEnvironment {
 public:
  explicit InEnvironment(Variables variables) : variables_(std::move(variables)) {
    for (const auto& [name, value] : variables_) ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~InEnvironment() {
    for (const auto& [name, value] : variables_) ::unsetenv(name.c_str());
  }
  InEnvironment(const InEnvironment&) = delete;
  InEnvironment& operator=(const InEnvironment&) = delete;

 private:
  const Variables variables_;
};

Variables int4_and(Variables more) {
  more["TUTTI_NCCL_COMPRESS"] = "int4";
  return more;
}

ncclConfig_t named(const char* name) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.commName = name;
  return config;
}

// Communicator and stream of a rank.
struct RankHandles {
  ncclComm_t comm;
  cudaStream_t stream;
};
using Body = std::function<ncclResult_t(const RankHandles& at, const float* send, float* recv)>;
using Expected = std::function<float(int rank, std::size_t i)>;

// Runs one call on all ranks with their values. Returns whether every rank has the `expected` results.
bool comes_out(const NcclRanks& ranks, std::size_t send_count, std::size_t recv_count, const Body& body,
               const Expected& expected) {
  std::vector<std::vector<float>> results(kRanks, std::vector<float>(recv_count));
  ranks.run([&](int rank, ncclComm_t comm) {
    const std::vector<float> send = values_of<float>(rank, send_count);
    NCCL_EXPECT_OK(body({comm, stream_of(rank)}, send.data(), results[rank].data()));
    finish(rank);
  });
  std::size_t other = 0;
  for (int rank = 0; rank < kRanks; ++rank) {
    for (std::size_t i = 0; i < recv_count; ++i) other += results[rank][i] == expected(rank, i) ? 0 : 1;
  }
  EXPECT_TRUE(other == 0 || other > recv_count / 8) << other << " of " << recv_count << " on " << kRanks << " ranks";
  return other == 0;
}

bool reduces_exactly(const NcclRanks& ranks, std::size_t count = kMany) {
  return comes_out(
      ranks, count, count,
      [&](const RankHandles& at, const float* send, float* recv) {
        return ncclAllReduce(send, recv, count, ncclFloat32, ncclSum, at.comm, at.stream);
      },
      [](int, std::size_t i) { return static_cast<float>(sum_of(kRanks, i)); });
}

bool scatters_exactly(const NcclRanks& ranks, std::size_t count) {
  return comes_out(
      ranks, count * kRanks, count,
      [&](const RankHandles& at, const float* send, float* recv) {
        return ncclReduceScatter(send, recv, count, ncclFloat32, ncclSum, at.comm, at.stream);
      },
      [&](int rank, std::size_t i) {
        return static_cast<float>(sum_of(kRanks, static_cast<std::size_t>(rank) * count + i));
      });
}

bool gathers_exactly(const NcclRanks& ranks) {
  return comes_out(
      ranks, kMany, kRanks * kMany,
      [](const RankHandles& at, const float* send, float* recv) {
        return ncclAllGather(send, recv, kMany, ncclFloat32, at.comm, at.stream);
      },
      [](int, std::size_t i) { return static_cast<float>(value_of(static_cast<int>(i / kMany), i % kMany)); });
}

bool broadcasts_exactly(const NcclRanks& ranks) {
  return comes_out(
      ranks, kMany, kMany,
      [](const RankHandles& at, const float* send, float* recv) {
        return ncclBroadcast(send, recv, kMany, ncclFloat32, 1, at.comm, at.stream);
      },
      [](int, std::size_t i) { return static_cast<float>(value_of(1, i)); });
}

TEST(Compression, IsOff_ByDefault) {
  const InEnvironment requested(Variables{{"TUTTI_NCCL_COMPRESS_MIN_BYTES", "0"}});
  EXPECT_TRUE(reduces_exactly(NcclRanks(kRanks)));
}

TEST(Compression, AppliesFrom256KiB) {
  const InEnvironment requested(int4_and({}));
  const NcclRanks ranks(kRanks);
  EXPECT_TRUE(reduces_exactly(ranks, kMany - 1));
  EXPECT_FALSE(reduces_exactly(ranks, kMany));
  EXPECT_TRUE(reduces_exactly(ranks, 1));
}

TEST(Compression, AppliesFromMinimumSize) {
  const InEnvironment requested(int4_and({{"TUTTI_NCCL_COMPRESS_MIN_BYTES", "12000"}}));
  const NcclRanks ranks(kRanks);
  EXPECT_TRUE(reduces_exactly(ranks, 2'999));
  EXPECT_FALSE(reduces_exactly(ranks, 3'000));
  EXPECT_TRUE(scatters_exactly(ranks, 999)) << "the larger buffer counts";
  EXPECT_FALSE(scatters_exactly(ranks, 1'000));
}

TEST(Compression, IsFixed_WhenCommunicatorIsCreated) {
  auto requested = std::make_unique<InEnvironment>(int4_and({}));
  const NcclRanks compressed(kRanks);
  requested = nullptr;
  const NcclRanks raw(kRanks);
  EXPECT_FALSE(reduces_exactly(compressed));
  EXPECT_TRUE(reduces_exactly(raw));
}

TEST(Compression, AppliesToReductions_UnlessOtherCollectivesAreSet) {
  {
    const InEnvironment requested(int4_and({}));
    const NcclRanks ranks(kRanks);
    EXPECT_TRUE(gathers_exactly(ranks));
    EXPECT_TRUE(broadcasts_exactly(ranks));
    EXPECT_FALSE(scatters_exactly(ranks, kMany));
  }
  const InEnvironment requested(int4_and({{"TUTTI_NCCL_COMPRESS_COLLECTIVES", "all_gather,broadcast"}}));
  const NcclRanks ranks(kRanks);
  EXPECT_FALSE(gathers_exactly(ranks));
  EXPECT_FALSE(broadcasts_exactly(ranks));
  EXPECT_TRUE(reduces_exactly(ranks));
}

// The maximum is a value of some rank; sums are not, whatever their factor.
TEST(Compression, AppliesToSumsAndAverages) {
  const InEnvironment requested(int4_and({}));
  const NcclRanks ranks(kRanks);
  const auto reduces_so = [&](const std::function<ncclRedOp_t(ncclComm_t)>& op, const Expected& expected) {
    return comes_out(
        ranks, kMany, kMany,
        [&](const RankHandles& at, const float* send, float* recv) {
          return ncclAllReduce(send, recv, kMany, ncclFloat32, op(at.comm), at.comm, at.stream);
        },
        expected);
  };
  const auto largest = [](int, std::size_t i) {
    return static_cast<float>(std::max({value_of(0, i), value_of(1, i), value_of(2, i)}));
  };
  EXPECT_TRUE(reduces_so([](ncclComm_t) { return ncclMax; }, largest));
  EXPECT_FALSE(reduces_so([](ncclComm_t) { return ncclAvg; },
                          [](int, std::size_t i) { return static_cast<float>(sum_of(kRanks, i)) / kRanks; }));
  const auto doubled = [](ncclComm_t comm) {
    float two = 2;
    ncclRedOp_t op = ncclSum;
    NCCL_EXPECT_OK(ncclRedOpCreatePreMulSum(&op, &two, ncclFloat32, ncclScalarHostImmediate, comm));
    return op;
  };
  EXPECT_FALSE(reduces_so(doubled, [](int, std::size_t i) { return 2 * static_cast<float>(sum_of(kRanks, i)); }));
}

// The upper half of a float32, in which numbers of this size are exact.
bool halves_exactly(const NcclRanks& ranks) {
  const auto half = [](float value) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16); };
  std::size_t wrong = 0;
  std::vector<std::vector<std::uint16_t>> results(kRanks, std::vector<std::uint16_t>(2 * kMany));
  ranks.run([&](int rank, ncclComm_t comm) {
    for (std::size_t i = 0; i < 2 * kMany; ++i) results[rank][i] = half(static_cast<float>(value_of(rank, i)));
    NCCL_EXPECT_OK(ncclAllReduce(results[rank].data(), results[rank].data(), 2 * kMany, ncclBfloat16, ncclSum, comm,
                                 stream_of(rank)));
    finish(rank);
  });
  for (std::size_t i = 0; i < 2 * kMany; ++i) {
    if (results[0][i] != half(static_cast<float>(sum_of(kRanks, i)))) ++wrong;
  }
  return wrong == 0;
}

TEST(Compression, AppliesToConfiguredTypes) {
  {
    const InEnvironment requested(int4_and({}));
    EXPECT_FALSE(halves_exactly(NcclRanks(kRanks)));
  }
  const InEnvironment requested(int4_and({{"TUTTI_NCCL_COMPRESS_TYPES", "float16,bfloat16"}}));
  const NcclRanks ranks(kRanks);
  EXPECT_FALSE(halves_exactly(ranks));
  EXPECT_TRUE(reduces_exactly(ranks));
}

TEST(Compression, AppliesToCommunicators_ByName) {
  const InEnvironment requested(int4_and({{"TUTTI_NCCL_COMPRESS_COMMS", "dp_?,grad*"}}));
  EXPECT_FALSE(reduces_exactly(NcclRanks(kRanks, named("gradients"))));
  EXPECT_FALSE(reduces_exactly(NcclRanks(kRanks, named("dp_1"))));
  EXPECT_TRUE(reduces_exactly(NcclRanks(kRanks, named("dp_12"))));
  EXPECT_TRUE(reduces_exactly(NcclRanks(kRanks))) << "it has no name";
}

TEST(Compression, AppliesToSubCommunicators_ByName) {
  const InEnvironment requested(int4_and({{"TUTTI_NCCL_COMPRESS_COMMS", "grad*"}}));
  const NcclRanks whole(kRanks, named("grads"));
  const auto part_reduces_exactly = [&](ncclConfig_t* config) {
    std::atomic<int> inexact = 0;
    whole.run([&](int rank, ncclComm_t comm) {
      ncclComm_t part = nullptr;
      NCCL_EXPECT_OK(ncclCommSplit(comm, 0, rank, &part, config));
      std::vector<float> values = values_of<float>(rank, kMany);
      NCCL_EXPECT_OK(ncclAllReduce(values.data(), values.data(), kMany, ncclFloat32, ncclSum, part, stream_of(rank)));
      finish(rank);
      for (std::size_t i = 0; i < kMany; ++i) inexact += values[i] == static_cast<float>(sum_of(kRanks, i)) ? 0 : 1;
      NCCL_EXPECT_OK(ncclCommDestroy(part));
    });
    return inexact == 0;
  };
  EXPECT_FALSE(part_reduces_exactly(nullptr));
  ncclConfig_t other = named("weights");
  EXPECT_TRUE(part_reduces_exactly(&other));
}

TEST(Compression, IsDecidedPerCall_InGroup) {
  const InEnvironment requested(int4_and({}));
  const NcclRanks ranks(kRanks);
  std::vector<std::vector<float>> many(kRanks), few(kRanks);
  NCCL_EXPECT_OK(ranks.run_in_group([&](int rank, ncclComm_t comm) {
    many[rank] = values_of<float>(rank, kMany);
    few[rank] = values_of<float>(rank, 500);
    NCCL_EXPECT_OK(
        ncclAllReduce(many[rank].data(), many[rank].data(), kMany, ncclFloat32, ncclSum, comm, stream_of(rank)));
    NCCL_EXPECT_OK(ncclAllReduce(few[rank].data(), few[rank].data(), 500, ncclFloat32, ncclSum, comm, stream_of(rank)));
  }));
  for (int rank = 0; rank < kRanks; ++rank) finish(rank);
  for (int rank = 0; rank < kRanks; ++rank) {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < kMany; ++i) wrong += many[rank][i] == static_cast<float>(sum_of(kRanks, i)) ? 0 : 1;
    EXPECT_GT(wrong, kMany / 8);
    EXPECT_EQ(many[rank], many[0]) << "the same bits on all ranks";
    for (std::size_t i = 0; i < 500; ++i) ASSERT_EQ(few[rank][i], static_cast<float>(sum_of(kRanks, i)));
  }
}

TEST(Compression, ReportsRankWithDifferentSetting) {
  ncclUniqueId id;
  ncclComm_t comms[2] = {};
  NCCL_EXPECT_OK(ncclGetUniqueId(&id));
  NCCL_EXPECT_OK(ncclGroupStart());
  NCCL_EXPECT_OK(ncclCommInitRank(&comms[0], 2, id, 0));
  {
    const InEnvironment requested(int4_and({}));
    NCCL_EXPECT_OK(ncclCommInitRank(&comms[1], 2, id, 1));
  }
  NCCL_EXPECT_OK(ncclGroupEnd());
  const auto reduce = [&](int rank, std::size_t count) {
    std::vector<float> values = values_of<float>(rank, count);
    (void)ncclAllReduce(values.data(), values.data(), count, ncclFloat32, ncclSum, comms[rank], stream_of(rank));
    finish(rank);
  };
  run_threads(2, [&](int rank) { reduce(rank, 1000); });  // Uncompressed on both ranks.
  for (const ncclComm_t comm : comms) EXPECT_EQ(outcome_of(comm), ncclSuccess);
  // Like a client's watchdog: kernels that exchange no message do not find that their calls differ.
  std::atomic<bool> done = stream_of(0) == nullptr;  // Calls on host memory must end by themselves.
  std::thread watchdog([&] {
    for (; !done; std::this_thread::yield())
      for (const ncclComm_t comm : comms) (void)outcome_of(comm);
  });
  run_threads(2, [&](int rank) { reduce(rank, kMany); });
  done = true;
  watchdog.join();
  for (const ncclComm_t comm : comms) {
    EXPECT_EQ(outcome_of(comm), ncclInvalidUsage);
    expect_error_text("compression format");
    expect_error_text("int4");
    expect_error_text("TUTTI_NCCL_COMPRESS");
  }
  for (const ncclComm_t comm : comms) NCCL_EXPECT_OK(ncclCommDestroy(comm));
}

std::vector<std::string> warnings_of(const Variables& variables) { return refused_by_clients(Environment(variables)); }

void expect_no_communicator(const Variables& variables, const std::string& sentence) {
  const InEnvironment requested(variables);
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  NCCL_EXPECT_OK(ncclGetUniqueId(&id));
  EXPECT_NE(ncclCommInitRank(&comm, 1, id, 0), ncclSuccess);
  EXPECT_EQ(comm, nullptr);
  expect_error_text(sentence);
}

// `tutti doctor` reports the error with which a communicator fails.
TEST(Compression, RejectsInvalidSettings) {
  for (const auto& [name, value] : Variables{{"TUTTI_NCCL_COMPRESS_MAX_RELATIVE_ERROR", "1 %"},
                                             {"TUTTI_NCCL_COMPRESS_MIN_BYTES", "1M"},
                                             {"TUTTI_NCCL_COMPRESS_TYPES", "float32,float64"},
                                             {"TUTTI_NCCL_COMPRESS_COLLECTIVES", "all_reduce,allgather"}}) {
    const Variables variables = int4_and({{name, value}});
    const std::vector<std::string> doubts = warnings_of(variables);
    ASSERT_EQ(doubts.size(), 1U);
    EXPECT_NE(doubts[0].find(name + " is \"" + value + "\", but must be "), std::string::npos) << doubts[0];
    expect_no_communicator(variables, doubts[0]);
  }
  for (const Variables& variables :
       {int4_and({{"TUTTI_NCCL_COMPRESS_MIN_BYTES", "-1"}}), int4_and({{"TUTTI_NCCL_COMPRESS_TYPES", "float32,"}}),
        Variables{{"TUTTI_NCCL_COMPRESS_MAX_RELATIVE_ERROR", "1"}},
        Variables{{"TUTTI_NCCL_COMPRESS_MAX_RELATIVE_ERROR", "nan"}}}) {
    EXPECT_EQ(warnings_of(variables).size(), 1U);
    expect_no_communicator(variables, "must be ");
  }
  const Variables both = int4_and({{"TUTTI_NCCL_COMPRESS_MAX_RELATIVE_ERROR", "0.01"}});
  ASSERT_EQ(warnings_of(both).size(), 1U);
  EXPECT_NE(warnings_of(both)[0].find("set only one of them"), std::string::npos) << warnings_of(both)[0];
  expect_no_communicator(both, warnings_of(both)[0]);
  EXPECT_TRUE(warnings_of({{"TUTTI_NCCL_COMPRESS_MAX_RELATIVE_ERROR", "0.01"}}).empty());
  const Variables unknown = {{"TUTTI_NCCL_COMPRESS", "int9"}};
  ASSERT_EQ(warnings_of(unknown).size(), 1U);
  EXPECT_NE(warnings_of(unknown)[0].find("int9"), std::string::npos) << warnings_of(unknown)[0];
  expect_no_communicator(unknown, "TUTTI_NCCL_COMPRESS: ");
  EXPECT_TRUE(warnings_of(int4_and({{"TUTTI_NCCL_COMPRESS_TYPES", "bfloat16"}})).empty());
}

TEST(Compression, AcceptsSpacesInLists) {
  const Variables variables = int4_and({{"TUTTI_NCCL_COMPRESS_TYPES", "float16, bfloat16"},
                                        {"TUTTI_NCCL_COMPRESS_COLLECTIVES", "all_gather, all_reduce"}});
  EXPECT_EQ(warnings_of(variables), std::vector<std::string>());
  const InEnvironment requested(variables);
  EXPECT_FALSE(halves_exactly(NcclRanks(kRanks)));
}

}  // namespace
}  // namespace tutti::test
