// Error feedback and stochastic rounding through the API.
#include <cmath>
#include <random>
#include <vector>

#include "tests/api/ranks.h"

namespace tutti::test {
namespace {

using Floats = std::vector<float>;
constexpr std::size_t kCount = 3000;

// Creates another handle to `comm` that compresses messages.
tutti_comm compressed(tutti_comm comm, const char* compression, const char* rounding = nullptr,
                      std::uint64_t seed = 0) {
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  options.compression = compression;
  options.compression_rounding = rounding;
  options.compression_seed = seed;
  tutti_comm view = nullptr;
  TUTTI_EXPECT_OK(tutti_comm_with_options(comm, &options, &view));
  return view;
}

Floats numbers(int rank, std::size_t count = kCount) {
  std::mt19937 random(static_cast<unsigned>(rank) + 1);
  std::normal_distribution<float> normal;
  Floats values(count);
  for (float& value : values) value = normal(random);
  return values;
}

bool is_zero(const Floats& values, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    if (values[i] != 0) return false;
  }
  return true;
}

// The mean of the results of many calls with the same input.
Floats mean_result(const Ranks& ranks, int calls, bool with_residual) {
  Floats mean(kCount, 0);
  ranks.run([&](int rank, tutti_comm comm) {
    const tutti_comm view = compressed(comm, "int4");
    Floats send = numbers(rank), recv(kCount), residual(kCount, 0);
    if (with_residual) {
      TUTTI_EXPECT_OK(tutti_residual_attach(send.data(), kCount, tutti_float32, residual.data(), comm));
    }
    for (int call = 0; call < calls; ++call) {
      TUTTI_EXPECT_OK(tutti_all_reduce(send.data(), recv.data(), kCount, tutti_float32, tutti_sum, view, nullptr));
      for (std::size_t i = 0; rank == 0 && i < kCount; ++i) mean[i] += recv[i] / static_cast<float>(calls);
    }
    if (with_residual) {
      TUTTI_EXPECT_OK(tutti_residual_detach(send.data(), view));
    }
    EXPECT_EQ(send, numbers(rank));
    TUTTI_EXPECT_OK(tutti_comm_destroy(view));
  });
  return mean;
}

TEST(Residual, ReducesErrorOfMean) {
  const Ranks ranks(3);
  Floats exact(kCount, 0);
  for (int rank = 0; rank < ranks.count(); ++rank) {
    const Floats values = numbers(rank);
    for (std::size_t i = 0; i < kCount; ++i) exact[i] += values[i];
  }
  const auto error_of = [&](const Floats& mean) {
    double error = 0;
    for (std::size_t i = 0; i < kCount; ++i) error += std::pow(static_cast<double>(mean[i]) - exact[i], 2);
    return std::sqrt(error / kCount);
  };
  const double without = error_of(mean_result(ranks, 50, false));
  const double with = error_of(mean_result(ranks, 50, true));
  EXPECT_GT(without, 0.1);
  EXPECT_LT(with, without / 10);
}

// A program that stops and resumes from saved residuals gets the same bits.
TEST(Residual, CanBeSavedAndRestored) {
  const auto results = [](bool stops) {
    std::vector<Floats> saved(2, Floats(kCount, 0));
    Floats last;
    for (int part = 0; part < 2; ++part) {
      const Ranks ranks(2);  // A separate program.
      for (int half = 0; half < (stops ? 1 : 2); ++half) {
        ranks.run([&](int rank, tutti_comm comm) {
          const tutti_comm view = compressed(comm, "int8");
          Floats send = numbers(rank), recv(kCount), residual = saved[rank];
          TUTTI_EXPECT_OK(tutti_residual_attach(send.data(), kCount, tutti_float32, residual.data(), view));
          for (int call = 0; call < 5; ++call)
            TUTTI_EXPECT_OK(
                tutti_all_reduce(send.data(), recv.data(), kCount, tutti_float32, tutti_avg, view, nullptr));
          saved[rank] = residual;
          if (rank == 0) last = recv;
          TUTTI_EXPECT_OK(tutti_comm_destroy(view));
          TUTTI_EXPECT_OK(tutti_residual_detach(send.data(), comm));
        });
      }
      if (!stops) break;
    }
    return last;
  };
  EXPECT_EQ(results(true), results(false));
}

// Calls on parts of a buffer use the same parts of the residual: in streams, in groups, and in place.
TEST(Residual, BelongsToElementsOfBuffer) {
  const Ranks ranks(2);
  ranks.run([](int rank, tutti_comm comm) {
    const tutti_comm view = compressed(comm, "int8");
    tutti_stream stream = nullptr;
    TUTTI_EXPECT_OK(tutti_stream_create(&stream));
    Floats send = numbers(rank), recv(kCount), residual(kCount, 0);
    TUTTI_EXPECT_OK(tutti_residual_attach(send.data(), kCount, tutti_float32, residual.data(), comm));
    TUTTI_EXPECT_OK(tutti_all_reduce(&send[1000], &recv[0], 500, tutti_float32, tutti_sum, view, stream));
    TUTTI_EXPECT_OK(tutti_stream_synchronize(stream));
    EXPECT_TRUE(is_zero(residual, 0, 1000) && is_zero(residual, 1500, kCount));
    EXPECT_FALSE(is_zero(residual, 1000, 1500));
    TUTTI_EXPECT_OK(tutti_group_start());
    TUTTI_EXPECT_OK(tutti_reduce_scatter(&send[2000], &recv[0], 250, tutti_float32, tutti_sum, view, nullptr));
    TUTTI_EXPECT_OK(tutti_all_reduce(&send[200], &send[200], 300, tutti_float32, tutti_sum, view, nullptr));
    TUTTI_EXPECT_OK(tutti_group_end());
    EXPECT_FALSE(is_zero(residual, 2000, 2500) || is_zero(residual, 200, 500));
    EXPECT_TRUE(is_zero(residual, 0, 200) && is_zero(residual, 500, 1000) && is_zero(residual, 1500, 2000) &&
                is_zero(residual, 2500, kCount));
    TUTTI_EXPECT_OK(tutti_stream_destroy(stream));
    TUTTI_EXPECT_OK(tutti_comm_destroy(view));
  });
}

TEST(Residual, IsUnused_InOtherCalls) {
  const Ranks ranks(2);
  ranks.run([](int rank, tutti_comm comm) {
    const tutti_comm view = compressed(comm, "int8");
    Floats send = numbers(rank), recv(2 * kCount), residual(kCount, 0);
    TUTTI_EXPECT_OK(tutti_residual_attach(send.data(), kCount, tutti_float32, residual.data(), comm));
    TUTTI_EXPECT_OK(tutti_all_reduce(send.data(), recv.data(), kCount, tutti_float32, tutti_max, view, nullptr));
    TUTTI_EXPECT_OK(tutti_all_gather(send.data(), recv.data(), kCount, tutti_float32, view, nullptr));
    TUTTI_EXPECT_OK(tutti_all_reduce(send.data(), recv.data(), kCount, tutti_float32, tutti_sum, comm, nullptr));
    TUTTI_EXPECT_OK(tutti_residual_detach(send.data(), comm));
    TUTTI_EXPECT_OK(tutti_all_reduce(send.data(), recv.data(), kCount, tutti_float32, tutti_sum, view, nullptr));
    EXPECT_TRUE(is_zero(residual, 0, kCount));
    TUTTI_EXPECT_OK(tutti_comm_destroy(view));
  });
}

TEST(Residual, RejectsInvalidAttachments) {
  const Ranks ranks(1);
  const tutti_comm comm = ranks[0];
  Floats buffer(kCount), other(kCount), residual(kCount), second(kCount);
  const auto attach = [&](const void* to, std::size_t count, tutti_type type, float* values) {
    return tutti_residual_attach(to, count, type, values, comm);
  };
  EXPECT_EQ(attach(nullptr, 1, tutti_float32, residual.data()), tutti_invalid_argument);
  EXPECT_EQ(attach(buffer.data(), kCount, tutti_float32, nullptr), tutti_invalid_argument);
  EXPECT_EQ(attach(buffer.data(), 0, tutti_float32, residual.data()), tutti_invalid_argument);
  EXPECT_EQ(attach(buffer.data(), kCount, tutti_int32, residual.data()), tutti_invalid_argument);
  EXPECT_EQ(attach(buffer.data(), kCount, tutti_float32, &buffer[kCount - 1]), tutti_invalid_argument);
  EXPECT_EQ(tutti_residual_attach(buffer.data(), 1, tutti_float32, residual.data(), nullptr), tutti_invalid_argument);
  EXPECT_EQ(tutti_residual_detach(buffer.data(), comm), tutti_invalid_argument);
  TUTTI_EXPECT_OK(attach(&buffer[100], 100, tutti_float32, residual.data()));
  EXPECT_EQ(attach(&buffer[199], 10, tutti_float32, second.data()), tutti_invalid_argument);
  EXPECT_EQ(attach(other.data(), 10, tutti_float32, &residual[99]), tutti_invalid_argument);
  EXPECT_EQ(attach(other.data(), 10, tutti_float32, &buffer[150]), tutti_invalid_argument);
  TUTTI_EXPECT_OK(attach(&buffer[200], 100, tutti_float32, second.data()));
  const auto sum = [&](std::size_t begin, std::size_t count, tutti_type type) {
    return tutti_all_reduce(&buffer[begin], &other[0], count, type, tutti_sum, comm, nullptr);
  };
  EXPECT_EQ(sum(99, 10, tutti_float32), tutti_invalid_usage);
  EXPECT_EQ(sum(290, 20, tutti_float32), tutti_invalid_usage);
  EXPECT_EQ(sum(120, 10, tutti_bfloat16), tutti_invalid_usage);
  EXPECT_NE(last_error().find("bfloat16"), std::string::npos) << last_error();
  TUTTI_EXPECT_OK(sum(100, 100, tutti_float32));
  TUTTI_EXPECT_OK(sum(100, 100, tutti_int32));
  TUTTI_EXPECT_OK(sum(0, 100, tutti_float32));
}

TEST(StochasticRounding, IsSelectedByNameAndSeed) {
  const Ranks ranks(2);
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  options.compression_rounding = "up";
  tutti_comm none = nullptr;
  EXPECT_EQ(tutti_comm_with_options(ranks[0], &options, &none), tutti_invalid_argument);
  EXPECT_NE(last_error().find("nearest, stochastic"), std::string::npos) << last_error();
  const auto sums = [&](const char* rounding, std::uint64_t seed) {
    Floats sum(kCount);
    const Ranks fresh(2);
    fresh.run([&](int rank, tutti_comm comm) {
      const tutti_comm view = compressed(comm, "int4", rounding, seed);
      const Floats send = numbers(rank);
      Floats recv(kCount);
      TUTTI_EXPECT_OK(tutti_all_reduce(send.data(), recv.data(), kCount, tutti_float32, tutti_sum, view, nullptr));
      if (rank == 0) sum = recv;
      TUTTI_EXPECT_OK(tutti_comm_destroy(view));
    });
    return sum;
  };
  const Floats first = sums("stochastic", 1);
  EXPECT_EQ(sums("stochastic", 1), first);
  EXPECT_NE(sums("stochastic", 2), first);
  EXPECT_NE(sums("nearest", 1), first);
  EXPECT_EQ(sums("nearest", 1), sums(nullptr, 0));
}

}  // namespace
}  // namespace tutti::test
