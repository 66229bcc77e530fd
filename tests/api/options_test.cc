#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <string>

#include "tests/api/fake_backend.h"
#include "tutti/tutti.h"

namespace tutti::test {
namespace {

class CommOptionsTest : public CommHandlesTest {};

TEST_F(CommOptionsTest, PassesOptionsOfUsedHandle) {
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  tutti_tuning_options tuning = TUTTI_TUNING_OPTIONS_DEFAULT;
  tuning.algorithm = "ring";
  options.tuning = &tuning;
  tutti_comm view = nullptr;
  ASSERT_EQ(tutti_comm_with_options(comm_, &options, &view), tutti_ok);
  EXPECT_EQ(tutti_all_reduce(memory_, memory_, 1, tutti_float32, tutti_sum, view, nullptr), tutti_ok);
  EXPECT_EQ(fake_->last_algorithm, "ring");
  EXPECT_EQ(all_reduce(1), tutti_ok);
  EXPECT_EQ(fake_->last_algorithm, "");
  EXPECT_EQ(tutti_comm_finalize(view), tutti_invalid_usage);
  EXPECT_EQ(tutti_comm_destroy(view), tutti_ok);
  EXPECT_EQ(all_reduce(1), tutti_ok);

  ASSERT_EQ(tutti_comm_with_options(comm_, nullptr, &view), tutti_ok);
  EXPECT_EQ(tutti_comm_destroy(comm_), tutti_ok);
  EXPECT_EQ(tutti_comm_destroy(view), tutti_invalid_argument);  // Destroyed with the communicator.
  comm_ = insert_fake(fake_);
  for (const char* transport :
       {"carrier pigeon", "tcp"}) {  // No transport has this name; the communicator uses another.
    tuning.transport = transport;
    EXPECT_EQ(tutti_comm_with_options(comm_, &options, &view), tutti_invalid_argument);
  }
}

TEST_F(CommOptionsTest, RejectsDifferentCommunicatorName) {
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  tutti_comm view = nullptr;
  options.name = "other";
  EXPECT_EQ(tutti_comm_with_options(comm_, &options, &view), tutti_invalid_argument);
  options.name = "";  // The name of the fake.
  EXPECT_EQ(tutti_comm_with_options(comm_, &options, &view), tutti_ok);
}

TEST_F(CommOptionsTest, AcceptsKindsOfWaits_AtCreation) {
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  CommunicatorOptions inherited;
  inherited.wait = WaitMode::spin;
  const auto wait_of = [&](const char* name) {
    options.wait = name;
    auto merged = options_over(inherited, &options);
    return merged.ok() ? std::optional(merged.value().wait) : std::nullopt;
  };
  EXPECT_EQ(wait_of(nullptr), WaitMode::spin);
  EXPECT_EQ(wait_of("auto"), WaitMode::automatic);
  EXPECT_EQ(wait_of("spin"), WaitMode::spin);
  EXPECT_EQ(wait_of("sleep"), WaitMode::sleep);
  EXPECT_EQ(wait_of("doze"), std::nullopt);
  options.wait = "sleep";
  tutti_comm view = nullptr;
  EXPECT_EQ(tutti_comm_with_options(comm_, &options, &view), tutti_invalid_argument);
  EXPECT_EQ(last_error(),
            "tutti_comm_with_options: options.wait differs from that of the communicator, which cannot change");
}

TEST_F(CommOptionsTest, AcceptsTrafficClass_AtCreation) {
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  CommunicatorOptions inherited;
  inherited.traffic_class = 3;
  EXPECT_EQ(options_over(inherited, &options).value().traffic_class, 3);
  options.traffic_class = 255;
  EXPECT_EQ(options_over(inherited, &options).value().traffic_class, 255);
  tutti_comm view = nullptr;
  EXPECT_EQ(tutti_comm_with_options(comm_, &options, &view), tutti_invalid_argument);
  EXPECT_EQ(last_error(), "tutti_comm_with_options: options.traffic_class is not that of the communicator: leave it 0");
  options.traffic_class = 256;
  EXPECT_EQ(options_over(inherited, &options).status().message(),
            "options.traffic_class is 256: pass 1 to 255, or 0 for the default");
  options.size = offsetof(tutti_comm_options, traffic_class);  // A program of a version without the field.
  EXPECT_EQ(options_over(inherited, &options).value().traffic_class, 3);
}

TEST_F(CommOptionsTest, AcceptsEmptyStringsAsUnset) {
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  tutti_tuning_options tuning = TUTTI_TUNING_OPTIONS_DEFAULT;
  tuning.algorithm = "ring";
  options.tuning = &tuning;
  tutti_comm view = nullptr, second = nullptr;
  ASSERT_EQ(tutti_comm_with_options(comm_, &options, &view), tutti_ok);
  options.name = options.compression = options.memory = "";
  tuning.algorithm = tuning.protocol = tuning.transport = "";
  ASSERT_EQ(tutti_comm_with_options(view, &options, &second), tutti_ok) << last_error();
  EXPECT_EQ(tutti_all_reduce(memory_, memory_, 1, tutti_float32, tutti_sum, second, nullptr), tutti_ok);
  EXPECT_EQ(fake_->last_algorithm, "ring");  // Inherited.
}

TEST_F(CommOptionsTest, RejectsInvalidTimeouts) {
  tutti_comm view = nullptr;
  for (std::int64_t tutti_comm_options::*time :
       {&tutti_comm_options::timeout_ms, &tutti_comm_options::init_timeout_ms}) {
    tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
    options.*time = -2;
    EXPECT_EQ(tutti_comm_with_options(comm_, &options, &view), tutti_invalid_argument);
    EXPECT_NE(last_error().find("timeout_ms is -2: pass a time, 0 for"), std::string::npos) << last_error();
    options.*time = -1;
    ASSERT_EQ(tutti_comm_with_options(comm_, &options, &view), tutti_ok);
    EXPECT_EQ(tutti_comm_destroy(view), tutti_ok);
  }
}

// The error for an algorithm and a protocol from the environment; the call passes no options.
std::string error_of(const std::string& algorithm, const std::string& protocol) {
  CommunicatorOptions environment;
  environment.algorithm = algorithm;
  environment.protocol = protocol;
  return options_over(environment, nullptr).status().message();
}

TEST_F(CommOptionsTest, RejectsUnknownNames) {
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  tutti_tuning_options tuning = TUTTI_TUNING_OPTIONS_DEFAULT;
  tuning.algorithm = "rong";
  options.tuning = &tuning;
  const tutti_unique_id id = {};
  tutti_comm comm = nullptr;
  const std::function<tutti_status()> handles[] = {
      [&] { return tutti_comm_create(&id, 0, 1, &options, &comm); },
      [&] { return tutti_comm_create_all(1, &options, &comm); },
      [&] { return tutti_comm_create_from_environment(&options, &comm); },
      [&] { return tutti_comm_split(comm_, 0, 0, &options, &comm); },
      [&] { return tutti_comm_with_options(comm_, &options, &comm); },
  };
  for (const auto& handle : handles) {
    EXPECT_EQ(handle(), tutti_invalid_argument);
    EXPECT_NE(last_error().find("options.tuning->algorithm is \"rong\": did you mean ring?"), std::string::npos)
        << last_error();
  }
  tuning.algorithm = nullptr;
  tuning.protocol = "smoke";
  EXPECT_EQ(tutti_comm_create_all(1, &options, &comm), tutti_invalid_argument);
  EXPECT_NE(last_error().find("options.tuning->protocol is \"smoke\": must be one of LL, Simple, LL128"),
            std::string::npos);
  EXPECT_EQ(comm, nullptr);

  tuning.protocol = "LL128";
  EXPECT_EQ(tutti_comm_create_all(1, &options, &comm), tutti_unsupported);
  EXPECT_NE(last_error().find("protocol LL128 is for GPUs"), std::string::npos) << last_error();

  EXPECT_EQ(error_of("binary_tree", "LL"), "");
  EXPECT_EQ(error_of("rong", "").find("TUTTI_ALGORITHM is \"rong\""), 0U);
  EXPECT_EQ(error_of("", "smoke").find("TUTTI_PROTOCOL is \"smoke\""), 0U);
  EXPECT_EQ(error_of("hierarchical", ""), "");  // Requires several hosts: the call reports it.
}

TEST_F(CommOptionsTest, AcceptsProtocolInAnyCase) {
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  tutti_tuning_options tuning = TUTTI_TUNING_OPTIONS_DEFAULT;
  tuning.protocol = "ll";
  options.tuning = &tuning;
  auto merged = options_over({}, &options);
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(merged.value().protocol, "LL");
}

TEST_F(CommOptionsTest, RejectsTuningOptionsWithoutSize) {
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  const tutti_tuning_options tuning = {};
  options.tuning = &tuning;
  tutti_comm view = nullptr;
  EXPECT_EQ(tutti_comm_with_options(comm_, &options, &view), tutti_invalid_argument);
  EXPECT_NE(last_error().find("options.tuning->size is 0, but must be at least 48"), std::string::npos) << last_error();
  EXPECT_NE(last_error().find("TUTTI_TUNING_OPTIONS_DEFAULT"), std::string::npos) << last_error();
}

TEST_F(CommOptionsTest, AcceptsOptionsOfOtherVersions) {
  struct {
    tutti_comm_options known = TUTTI_COMM_OPTIONS_DEFAULT;
    std::uint64_t unknown = 0;
  } newer;
  tutti_tuning_options tuning = TUTTI_TUNING_OPTIONS_DEFAULT;
  tuning.algorithm = "ring";
  newer.known.tuning = &tuning;
  tutti_comm view = nullptr;
  newer.known.size = 79;
  EXPECT_EQ(tutti_comm_with_options(comm_, &newer.known, &view), tutti_invalid_argument);
  newer.known.size = 1'000'000;
  EXPECT_EQ(tutti_comm_with_options(comm_, &newer.known, &view), tutti_invalid_argument);
  EXPECT_NE(last_error().find("options.size is 1000000: initialize the struct with TUTTI_COMM_OPTIONS_DEFAULT"),
            std::string::npos)
      << last_error();
  newer.known.size = sizeof newer;
  ASSERT_EQ(tutti_comm_with_options(comm_, &newer.known, &view), tutti_ok);
  EXPECT_EQ(tutti_all_reduce(memory_, memory_, 1, tutti_float32, tutti_sum, view, nullptr), tutti_ok);
  EXPECT_EQ(fake_->last_algorithm, "ring");
  newer.unknown = 1;
  EXPECT_EQ(tutti_comm_with_options(comm_, &newer.known, &view), tutti_unsupported);
  EXPECT_NE(last_error().find("newer tutti"), std::string::npos) << last_error();
}

TEST_F(CommOptionsTest, RejectsTooManyChannels) {
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  tutti_comm view = nullptr;
  tutti_tuning_options tuning = TUTTI_TUNING_OPTIONS_DEFAULT;
  tuning.channels = 2;
  options.tuning = &tuning;
  EXPECT_EQ(tutti_comm_with_options(comm_, &options, &view), tutti_unsupported);
  CommunicatorOptions environment;
  environment.channels = 2;
  EXPECT_EQ(options_over(environment, nullptr).status().code(), Code::unsupported);
  tuning.channels = 1;
  EXPECT_TRUE(options_over(environment, &options).ok());
}

TEST_F(CommOptionsTest, ReadsBoundsOnChannels) {
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  tutti_tuning_options tuning = TUTTI_TUNING_OPTIONS_DEFAULT;
  tuning.min_channels = 2;
  options.tuning = &tuning;
  const CommunicatorOptions limited = options_over({}, &options).value();
  EXPECT_EQ(limited.min_channels, 2U);
  EXPECT_NE(limited.agreement_hash, options_over({}, nullptr).value().agreement_hash) << "ranks must agree";
  tuning.min_channels = 0;
  tuning.max_channels = 1;
  EXPECT_EQ(options_over({}, &options).value().max_channels, 1U);
  const Status status = options_over(limited, &options).status();
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_EQ(status.message(), "options.tuning->min_channels is 2, more than max_channels, 1");
}

}  // namespace
}  // namespace tutti::test
