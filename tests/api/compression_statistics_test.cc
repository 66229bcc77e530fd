// Savings of compression, queried by programs and logged.
#include <mutex>
#include <string>
#include <vector>

#include "src/base/log.h"
#include "tests/api/ranks.h"

namespace tutti::test {
namespace {

constexpr int kRanks = 2;
constexpr std::size_t kCount = 128 * 40;

tutti_compression_statistics statistics_of(tutti_comm comm) {
  tutti_compression_statistics statistics = TUTTI_COMPRESSION_STATISTICS_DEFAULT;
  TUTTI_EXPECT_OK(tutti_comm_compression_statistics(comm, &statistics));
  return statistics;
}

tutti_comm compressed(tutti_comm comm) {
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  options.compression = "int8";
  tutti_tuning_options tuning = TUTTI_TUNING_OPTIONS_DEFAULT;
  tuning.algorithm = "two_shot";
  options.tuning = &tuning;
  tutti_comm view = nullptr;
  TUTTI_EXPECT_OK(tutti_comm_with_options(comm, &options, &view));
  return view;
}

void reduce(tutti_comm comm) {
  std::vector<float> values(kCount, 1);
  TUTTI_EXPECT_OK(tutti_all_reduce(values.data(), values.data(), kCount, tutti_float32, tutti_sum, comm, nullptr));
}

TEST(CompressionStatistics, CoverAllHandlesOfCommunicator) {
  const Ranks ranks(kRanks);
  ranks.run([](int, tutti_comm comm) {
    const tutti_comm view = compressed(comm);
    EXPECT_EQ(statistics_of(comm).compressed_calls, 0U);
    reduce(comm);
    EXPECT_EQ(statistics_of(comm).element_bytes, 0U);
    for (int i = 0; i < 3; ++i) reduce(view);
    for (const tutti_comm handle : {comm, view}) {
      const tutti_compression_statistics seen = statistics_of(handle);
      EXPECT_EQ(seen.compressed_calls, 3U);
      EXPECT_EQ(seen.uncompressed_calls, 1U);
      EXPECT_EQ(seen.element_bytes, 3 * kCount * sizeof(float));  // Half of them twice.
      EXPECT_EQ(seen.message_bytes, 3 * kCount / 128 * 130);
    }
  });
}

TEST(CompressionStatistics, CountCallsInStreamsAndGroups) {
  const Ranks ranks(kRanks);
  ranks.run([](int, tutti_comm comm) {
    const tutti_comm view = compressed(comm);
    std::vector<float> one(kCount), other(kCount);
    tutti_stream stream = nullptr;
    TUTTI_EXPECT_OK(tutti_stream_create(&stream));
    TUTTI_EXPECT_OK(tutti_group_start());
    for (std::vector<float>* values : {&one, &other})
      TUTTI_EXPECT_OK(tutti_all_reduce(values->data(), values->data(), kCount, tutti_float32, tutti_sum, view, stream));
    TUTTI_EXPECT_OK(tutti_group_end());
    TUTTI_EXPECT_OK(tutti_stream_synchronize(stream));
    EXPECT_EQ(statistics_of(comm).compressed_calls, 2U);
    EXPECT_EQ(statistics_of(comm).element_bytes, 2 * kCount * sizeof(float));
    TUTTI_EXPECT_OK(tutti_stream_destroy(stream));
  });
}

TEST(CompressionStatistics, RequireSizeAndCommunicator) {
  const Ranks ranks(1);
  tutti_compression_statistics statistics = {};
  EXPECT_EQ(tutti_comm_compression_statistics(ranks[0], &statistics), tutti_invalid_argument);
  EXPECT_NE(std::string(tutti_last_error(nullptr)).find("TUTTI_COMPRESSION_STATISTICS_DEFAULT"), std::string::npos);
  EXPECT_EQ(tutti_comm_compression_statistics(ranks[0], nullptr), tutti_invalid_argument);
  statistics = TUTTI_COMPRESSION_STATISTICS_DEFAULT;
  EXPECT_EQ(tutti_comm_compression_statistics(nullptr, &statistics), tutti_invalid_argument);
}

std::mutex lines_mutex;
std::string lines;

TEST(CompressionStatistics, AreLogged_WhenCommunicatorEnds) {
  set_log_level(LogLevel::info);
  set_log_sink([](std::string_view line) {
    const std::lock_guard lock(lines_mutex);
    lines += line;
  });
  {
    const Ranks ranks(kRanks);
    ranks.run([](int rank, tutti_comm comm) {
      const tutti_comm view = compressed(comm);
      reduce(view);
      reduce(comm);
      if (rank == 0) {
        TUTTI_EXPECT_OK(tutti_comm_destroy(view));
        const std::lock_guard lock(lines_mutex);
        EXPECT_EQ(lines.find("rounded"), std::string::npos) << "a handle is not a communicator: " << lines;
      }
    });
  }
  {
    const Ranks raw(kRanks);
    raw.run([](int, tutti_comm comm) { reduce(comm); });
  }
  set_log_sink(nullptr);
  set_log_level(LogLevel::warn);
  const std::string words = ": 1 calls compressed, 1 not; 20480 bytes of elements were sent as 5200 bytes";
  std::size_t reported = 0;
  for (std::size_t at = lines.find("compressed,"); at != std::string::npos; at = lines.find("compressed,", at + 1))
    ++reported;
  EXPECT_EQ(reported, 2U) << lines;
  EXPECT_NE(lines.find("rank 0" + words), std::string::npos) << lines;
  EXPECT_NE(lines.find("rank 1" + words), std::string::npos) << lines;
}

}  // namespace
}  // namespace tutti::test
