// Stochastic rounding and error feedback through the API, with buffers on the current device.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/executor/current_rig.h"
#include "tutti/tutti.h"

namespace tutti::test {
namespace {

constexpr int kRanks = 2;
constexpr std::size_t kCount = 3000;
using Floats = std::vector<float>;

class DeviceCompression : public testing::Test {
 protected:
  void SetUp() override {
    tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
    options.memory = "cuda";
    ASSERT_EQ(tutti_comm_create_all(kRanks, &options, comms_), tutti_ok) << tutti_last_error(nullptr);
    for (int rank = 0; rank < kRanks; ++rank) {
      streams_[rank] = rig_.make_stream();
      std::mt19937 random(static_cast<unsigned>(rank) + 1);
      std::normal_distribution<float> normal;
      inputs_[rank].resize(kCount);
      for (float& value : inputs_[rank]) value = normal(random);
      outputs_[rank].assign(kCount, 0);
      residuals_[rank].assign(kCount, 0);
    }
  }
  void TearDown() override {
    end(comms_);
    for (DeviceStream stream : streams_) rig_.destroy_stream(stream);
  }
  static void end(tutti_comm* comms) {
    EXPECT_EQ(tutti_group_start(), tutti_ok);
    for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(tutti_comm_destroy(comms[rank]), tutti_ok);
    EXPECT_EQ(tutti_group_end(), tutti_ok) << tutti_last_error(nullptr);
  }
  void sum(tutti_comm* comms, std::size_t first = 0) {
    ASSERT_EQ(tutti_group_start(), tutti_ok);
    for (int rank = 0; rank < kRanks; ++rank)
      EXPECT_EQ(tutti_all_reduce(inputs_[rank].data() + first, outputs_[rank].data() + first, kCount - first,
                                 tutti_float32, tutti_sum, comms[rank], static_cast<tutti_stream>(streams_[rank])),
                tutti_ok)
          << tutti_last_error(nullptr);
    ASSERT_EQ(tutti_group_end(), tutti_ok) << tutti_last_error(nullptr);
    for (DeviceStream stream : streams_) EXPECT_TRUE(rig_.synchronize(stream).ok());
  }
  // Creates other handles to the communicators.
  void view(const tutti_comm_options& options, tutti_comm* views) {
    for (int rank = 0; rank < kRanks; ++rank)
      ASSERT_EQ(tutti_comm_with_options(comms_[rank], &options, &views[rank]), tutti_ok) << tutti_last_error(nullptr);
  }

  DeviceRig& rig_ = current_rig();
  DeviceStream streams_[kRanks];
  tutti_comm comms_[kRanks] = {};
  Floats inputs_[kRanks], outputs_[kRanks], residuals_[kRanks];
};

TEST_F(DeviceCompression, FeedsBackQuantizationError) {
  constexpr std::size_t kFirst = 600;  // The calls cover a part of the buffer.
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  options.compression = "int4";
  tutti_comm views[kRanks] = {};
  view(options, views);
  for (int rank = 0; rank < kRanks; ++rank)
    ASSERT_EQ(tutti_residual_attach(inputs_[rank].data(), kCount, tutti_float32, residuals_[rank].data(), comms_[rank]),
              tutti_ok)
        << tutti_last_error(nullptr);
  for (int call = 0; call < 3; ++call) {
    const Floats before[kRanks] = {residuals_[0], residuals_[1]};
    sum(views, kFirst);
    double taken = 0;
    for (std::size_t i = 0; i < kCount; ++i) {
      double given = 0;
      for (int rank = 0; rank < kRanks; ++rank) {
        given += static_cast<double>(inputs_[rank][i]) + before[rank][i] - residuals_[rank][i];
        taken += std::abs(residuals_[rank][i]);
        const float max = i < kFirst ? 0 : INFINITY;
        ASSERT_LE(std::abs(residuals_[rank][i]), max) << i;
      }
      const double wanted = i < kFirst ? 0 : given;
      ASSERT_NEAR(outputs_[0][i], wanted, 2e-5) << i;
    }
    EXPECT_GT(taken, 1);
  }
  for (int rank = 0; rank < kRanks; ++rank)
    EXPECT_EQ(tutti_residual_detach(inputs_[rank].data(), comms_[rank]), tutti_ok);
  const Floats before = residuals_[0];
  sum(views);
  EXPECT_EQ(residuals_[0], before);
  end(views);
}

TEST_F(DeviceCompression, RoundsByRandomNumbersOfSeed) {
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  options.compression = "int4";
  options.compression_rounding = "stochastic";
  options.compression_seed = 3;
  tutti_comm views[kRanks] = {};
  view(options, views);
  sum(views);
  const Floats first = outputs_[0];
  EXPECT_EQ(outputs_[1], first);
  sum(views);
  EXPECT_NE(outputs_[0], first) << "a call has numbers of its own";
  end(views);
}

TEST_F(DeviceCompression, RejectsErrorBound_WithStochasticRounding) {
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  options.max_relative_error = 0.01;
  options.compression_rounding = "stochastic";
  tutti_comm view = nullptr;
  EXPECT_EQ(tutti_comm_with_options(comms_[0], &options, &view), tutti_invalid_argument);
  EXPECT_NE(std::string(tutti_last_error(nullptr)).find("max_relative_error"), std::string::npos);
}

}  // namespace
}  // namespace tutti::test
