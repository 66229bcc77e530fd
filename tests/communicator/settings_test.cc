// Checks for settings that are invalid or have no effect.
#include "src/communicator/joining/settings.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "src/base/log.h"
#include "tests/communicator/ranks.h"

namespace tutti::test {
namespace {

Config config_of(std::map<std::string, std::string> variables) {
  return read_config(Environment(std::move(variables))).config;
}

std::vector<std::string> refused(const Config& config) { return refused_settings(Environment({}), config); }

TEST(Settings, RejectUnknownTransport) {
  for (const char* transport : {"", "shm", "tcp"})
    EXPECT_EQ(refused(config_of({{"TUTTI_TRANSPORT", transport}})), std::vector<std::string>()) << transport;
  const auto pigeons = refused(config_of({{"TUTTI_TRANSPORT", "pigeons"}}));
  ASSERT_EQ(pigeons.size(), 1U);
  EXPECT_EQ(pigeons[0].find("TUTTI_TRANSPORT is \"pigeons\": must be one of shm, tcp"), 0U) << pigeons[0];
}

TEST(Settings, RejectGpuOptions_OnHostMemory) {
  EXPECT_EQ(refused_on_host_memory(config_of({})), std::vector<std::string>());
  EXPECT_EQ(refused_on_host_memory(config_of({{"TUTTI_PROTOCOL", "LL"}, {"TUTTI_CHANNELS", "1"}})),
            std::vector<std::string>());
  const auto both = refused_on_host_memory(config_of({{"TUTTI_PROTOCOL", "LL128"}, {"TUTTI_CHANNELS", "3"}}));
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].find("protocol LL128 is for GPUs"), 0U) << both[0];
  EXPECT_EQ(both[1].find("3 channels: host memory has 1 channel"), 0U) << both[1];
  EXPECT_EQ(refused(config_of({{"TUTTI_PROTOCOL", "LL128"}, {"TUTTI_CHANNELS", "3"}})), std::vector<std::string>());
}

TEST(Settings, IgnoreNcclOptions_ThatDoNotFit) {
  EXPECT_EQ(refused_on_host_memory(config_of({{"NCCL_PROTO", "LL128"}})), std::vector<std::string>());
}

TEST(Settings, ReportUnusedTuneFile_WhenNotAutotuning) {
  EXPECT_EQ(ineffective_tuning(config_of({})), "");
  EXPECT_EQ(ineffective_tuning(config_of({{"TUTTI_ALGORITHM", "ring"}})), "") << "nothing is set that could be idle";
  EXPECT_EQ(ineffective_tuning(config_of({{"TUTTI_TUNE_FILE", "f"}})),
            "TUTTI_TUNE_FILE has no effect: TUTTI_TUNE is 0 (autotuning needs 1 or exact)");
  for (const char* tune : {"1", "exact"}) {
    EXPECT_EQ(ineffective_tuning(config_of({{"TUTTI_TUNE_FILE", "f"}, {"TUTTI_TUNE", tune}})), "");
    EXPECT_EQ(
        ineffective_tuning(config_of({{"TUTTI_TUNE_FILE", "f"}, {"TUTTI_TUNE", tune}, {"TUTTI_DETERMINISTIC", "1"}})),
        "TUTTI_TUNE and TUTTI_TUNE_FILE have no effect: TUTTI_DETERMINISTIC is 1");
  }
}

TEST(Settings, ReportUnusedAutotuning_WhenChoiceIsForced) {
  const std::map<std::string, std::string> forcing = {{"TUTTI_ALGORITHM", "ring"},      {"TUTTI_PROTOCOL", "Simple"},
                                                      {"TUTTI_TUNER_PLUGIN", "advice"}, {"NCCL_ALGO", "Ring"},
                                                      {"NCCL_PROTO", "Simple"},         {"TUTTI_DETERMINISTIC", "1"}};
  for (const auto& [name, value] : forcing) {
    const std::string idle = ineffective_tuning(config_of({{"TUTTI_TUNE", "1"}, {name, value}}));
    EXPECT_EQ(idle.find("TUTTI_TUNE has no effect: " + name), 0U) << idle;
  }
  EXPECT_EQ(ineffective_tuning(config_of({{"TUTTI_TUNE", "1"}, {"TUTTI_TUNER_PLUGIN", "none"}})), "");
  EXPECT_EQ(ineffective_tuning(config_of({{"TUTTI_TUNE", "1"}, {"NCCL_PROTO", "LL128"}})), "") << "that is for GPUs";
}

int unused_files_reported = 0;

// Set before the process reads its environment.
const int kTuneFileIsSet = ::setenv("TUTTI_TUNE_FILE", "/nonexistent/tuned", 1);

TEST(Settings, ReportUnusedTuneFile_OncePerProcess) {
  ASSERT_EQ(kTuneFileIsSet, 0);
  ASSERT_EQ(config().tune_file, "/nonexistent/tuned");
  set_log_sink([](std::string_view line) {
    if (line.find("TUTTI_TUNE_FILE has no effect") != std::string_view::npos) ++unused_files_reported;
  });
  make_ranks(1);
  EXPECT_EQ(unused_files_reported, 1);
  make_ranks(2);
  EXPECT_EQ(unused_files_reported, 1);
  set_log_sink(nullptr);
}

}  // namespace
}  // namespace tutti::test
