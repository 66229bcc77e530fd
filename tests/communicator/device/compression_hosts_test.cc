// Compressed messages between emulated hosts with ranks on devices. Results have the same bits as with ranks on host
// memory.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "algorithms/catalogue.h"
#include "src/compression/format.h"
#include "tests/communicator/device/part.h"

namespace tutti::test {
namespace {

constexpr std::size_t kCount = 9001;

CommunicatorOptions sending(const char* compression, const std::string& algorithm, RequestedRounding rounding = {}) {
  CommunicatorOptions options = over_transport();
  options.timeout_ms = 60'000;
  options.compression = compression;
  options.algorithm = algorithm;
  options.compression_rounding = rounding;
  options.update_agreement_hash();
  return options;
}

class DeviceCompression : public OnDevices {
 protected:
  struct Pair {
    template <class Rig>
    Pair(Rig& rig, const std::vector<Rank>& host_of, std::size_t count = kCount)
        : devices(rig, std::move(Communicator::create_all(Hosts(host_of), sending("", ""))).value()),
          hosts(std::move(Communicator::create_all(Hosts(host_of), sending("", ""))).value()) {
      std::mt19937 random(20);
      std::normal_distribution<float> normal;
      for (Rank rank = 0; rank < host_of.size(); ++rank) {
        inputs.push_back(devices.take<float>(host_of.size() * count));
        outputs.push_back(devices.take<float>(host_of.size() * count));
        residuals.push_back(devices.take<float>(host_of.size() * count));
        for (std::size_t i = 0; i < host_of.size() * count; ++i) inputs[rank][i] = normal(random);
      }
    }

    DeviceRanks devices;
    std::vector<std::unique_ptr<Communicator>> hosts;
    std::vector<float*> inputs, outputs, residuals;
  };

  // Runs a call on devices and on host memory, and compares outputs and residuals bit by bit. Reductions use error
  // feedback. Returns without a comparison if the call fails on host memory.
  void compare(Pair& pair, Collective collective, const CommunicatorOptions& options) {
    const auto ranks = static_cast<Rank>(pair.hosts.size());
    std::vector<DeviceCall> calls;
    std::vector<Call> made;
    for (Rank rank = 0; rank < ranks; ++rank) {
      std::fill_n(pair.outputs[rank], ranks * kCount, 0.0f);
      std::fill_n(pair.residuals[rank], ranks * kCount, 0.25f);
      made.push_back(call_of(collective, DataType::float32, kCount, pair.inputs[rank], pair.outputs[rank]));
      if (reduces(collective)) made.back().residual = pair.residuals[rank];
      calls.push_back(pair.devices.call(rank, made.back()));
      calls.back().options = options;
    }
    std::vector<std::vector<float>> expected(ranks, std::vector<float>(ranks * kCount));
    std::vector<std::vector<float>> quantization_errors(ranks, std::vector<float>(ranks * kCount, 0.25f));
    std::vector<Status> statuses(ranks);
    std::vector<std::thread> threads;
    for (Rank rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        Call call = made[rank];
        call.output = reinterpret_cast<std::byte*>(expected[rank].data());
        if (call.residual != nullptr) call.residual = quantization_errors[rank].data();
        statuses[rank] = pair.hosts[rank]->run(call, &options);
      });
    }
    for (std::thread& thread : threads) thread.join();
    if (!statuses[0].ok()) return;
    const Status enqueued = enqueue(calls);
    ASSERT_TRUE(enqueued.ok()) << enqueued.message();
    pair.devices.synchronize();
    EXPECT_STREQ(pair.devices[0].last_run().compression, options.compression.c_str());
    for (Rank rank = 0; rank < ranks; ++rank) {
      const std::vector<float> got(pair.outputs[rank], pair.outputs[rank] + ranks * kCount);
      ASSERT_EQ(got, expected[rank]) << "rank " << rank;
      const std::vector<float> lost(pair.residuals[rank], pair.residuals[rank] + ranks * kCount);
      ASSERT_EQ(lost, quantization_errors[rank]) << "rank " << rank;
    }
    ++compared_;
  }

  int compared_ = 0;
};

TEST_P(DeviceCompression, MatchesHostMemoryBits_AcrossHosts) {
  for (const std::vector<Rank>& host_of : {std::vector<Rank>{0, 0, 1, 1}, {0, 1, 1, 0, 1}}) {
    Pair pair(*rig_, host_of);
    for (std::uint32_t c = 0; c < kCollectives; ++c) {
      const auto collective = static_cast<Collective>(c);
      for (const Algorithm* algorithm : catalogue(collective)) {
        if (!std::string_view(algorithm->name()).starts_with("hierarchical")) continue;
        for (const char* compression : {"int8", "bf16"}) {
          for (const Rounding rounding : {Rounding::nearest, Rounding::stochastic}) {
            SCOPED_TRACE(std::string(name(collective)) + " " + algorithm->name() + " " + compression +
                         (rounding == Rounding::nearest ? "" : " stochastic"));
            const CommunicatorOptions options = sending(compression, algorithm->name(), {rounding, 7});
            ASSERT_NO_FATAL_FAILURE(compare(pair, collective, options));
          }
        }
      }
    }
  }
  EXPECT_GE(compared_, 32);
}

// The chosen format must satisfy the error bound and be faster by prediction. Outputs must equal those of a call that
// requests this format.
TEST_P(DeviceCompression, ChoosesFormat_WithinErrorBound) {
  constexpr Rank kRanks = 3;
  const auto bounded = [](double bound) {
    CommunicatorOptions options = sending("", "");
    options.max_relative_error = bound;
    options.update_agreement_hash();
    return options;
  };
  constexpr std::uint64_t kMax = kRanks * 100'000;
  Pair pair(*rig_, {0, 1, 2}, 100'000);
  const auto ran_with = [&](const CommunicatorOptions& options, std::uint64_t count, Reduction reduction) {
    std::vector<DeviceCall> calls;
    for (Rank rank = 0; rank < kRanks; ++rank) {
      Call call = call_of(Collective::all_reduce, DataType::float32, count, pair.inputs[rank], pair.outputs[rank]);
      call.reduction = reduction;
      calls.push_back(pair.devices.call(rank, call));
      calls.back().options = options;
    }
    const Status enqueued = enqueue(calls);
    EXPECT_TRUE(enqueued.ok()) << enqueued.message();
    pair.devices.synchronize();
    return pair.devices[0].last_run();
  };
  for (const double bound : {0.3, 0.0101, 0.0025}) {
    const LastRun ran = ran_with(bounded(bound), kMax, Reduction::sum);
    EXPECT_STRNE(ran.compression, "raw") << bound;
    EXPECT_LE(ran.error, bound);
    const std::vector<float> found(pair.outputs[1], pair.outputs[1] + kMax);
    (void)ran_with(sending(ran.compression, ran.algorithm), kMax, Reduction::sum);
    EXPECT_EQ(std::vector<float>(pair.outputs[1], pair.outputs[1] + kMax), found) << bound;
  }
  EXPECT_STREQ(ran_with(bounded(0.0001), kMax, Reduction::sum).compression, "raw") << "no format is as exact";
  EXPECT_STREQ(ran_with(bounded(0.3), 200, Reduction::sum).compression, "raw") << "it does not pay";
  EXPECT_STREQ(ran_with(bounded(0.3), kMax, Reduction::max).compression, "raw") << "no law says how its error grows";
}

// In a broadcast only rank 0 sends. Both ranks must count the compressed call, but only rank 0 its bytes.
TEST_P(DeviceCompression, CountsCalls_OfRanksThatSendNothing) {
  DeviceRanks ranks(*rig_, 2);
  std::vector<DeviceCall> calls;
  for (Rank rank = 0; rank < 2; ++rank) {
    float* buffer = ranks.take<float>(kCount);
    calls.push_back(ranks.call(rank, call_of(Collective::broadcast, DataType::float32, kCount, buffer, buffer)));
    calls.back().options = sending("int8", "");
  }
  const Status enqueued = enqueue(calls);
  ASSERT_TRUE(enqueued.ok()) << enqueued.message();
  ranks.synchronize();
  for (Rank rank = 0; rank < 2; ++rank) EXPECT_EQ(ranks[rank].compression_statistics().compressed_calls, 1U);
  EXPECT_EQ(ranks[0].compression_statistics().carried.message_bytes, (kCount + 127) / 128 * 130);
  EXPECT_EQ(ranks[1].compression_statistics().carried.message_bytes, 0U);
}

INSTANTIATE_TEST_SUITE_P(All, DeviceCompression, testing::ValuesIn(shared_device_kinds()), kind_of);

}  // namespace
}  // namespace tutti::test
