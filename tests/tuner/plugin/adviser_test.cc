// Tuner plugins of two versions, and some that are faulty.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "src/base/log.h"
#include "src/tuner/plugin/plugin.h"
#include "tests/tuner/plugin/stand_in.h"

namespace tutti::test {
namespace {

using nccl_tuner::Table;

std::vector<std::string> lines;

const std::vector<Candidate> kOurs = [] {
  std::vector<Candidate> made(3);
  const std::string_view names[] = {"two_shot", "ring", "double_binary_tree"};
  for (std::size_t i = 0; i < made.size(); ++i) {
    made[i].choice.algorithm = names[i];
    made[i].predicted_us = static_cast<double>(i + 1);
  }
  return made;
}();
constexpr PluginCall kPluginCall = {
    .collective = Collective::all_reduce, .ranks = 4, .block_bytes = 4096, .thread_blocks = 8};

std::string error_of_open(const std::string& name) {
  auto opened = TunerPlugin::open(name);
  return opened.ok() ? "" : std::move(opened).status().message();
}

class TunerPlugins : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    stand_in_ = StandIn();
    lines.clear();
    set_log_level(LogLevel::warn);
    set_log_sink([](std::string_view line) { lines.emplace_back(line); });
    auto opened = TunerPlugin::open(GetParam());
    ASSERT_TRUE(opened.ok()) << std::move(opened).status().message();
    plugin_ = std::move(opened).value();
  }
  void TearDown() override { set_log_sink(nullptr); }

  std::unique_ptr<TunerAdviser> adviser() const {
    return TunerAdviser::make(plugin_.get(), {.ranks = 4, .hosts = 2, .min_per_host = 1, .max_per_host = 3});
  }
  static void expect_one_line(const std::string& words) {
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_NE(lines[0].find(words), std::string::npos) << lines[0];
    EXPECT_NE(lines[0].find("StandIn ("), std::string::npos) << lines[0];
  }

  StandIn& stand_in_ = stand_in_of(GetParam());
  std::unique_ptr<TunerPlugin> plugin_;
};
INSTANTIATE_TEST_SUITE_P(Versions, TunerPlugins, testing::Values(STAND_IN_V4, STAND_IN_V5), [](const auto& version) {
  return std::string(version.param).find("v4") != std::string::npos ? "Four" : "Five";
});

TEST_P(TunerPlugins, ReceiveRanksAndCall) {
  const auto requested = adviser();
  EXPECT_EQ(stand_in_.ranks, 4U);
  EXPECT_EQ(stand_in_.hosts, 2U);
  EXPECT_TRUE(requested->ask(kPluginCall, kOurs).silent());
  EXPECT_EQ(stand_in_.requested.collective, 4);
  EXPECT_EQ(stand_in_.requested.bytes, 4096U);
  EXPECT_EQ(stand_in_.requested.registered, 0);
  EXPECT_EQ(stand_in_.before[1][2], 2);
  EXPECT_EQ(stand_in_.before[0][2], 3);
  EXPECT_EQ(stand_in_.before[1][0], -1);
  EXPECT_TRUE(lines.empty());
}

TEST_P(TunerPlugins, ReceiveHosts_InNewerVersion) {
  const auto requested = adviser();
  const bool newer = GetParam() == std::string_view(STAND_IN_V5);
  EXPECT_EQ(stand_in_.domains.count, newer ? 2 : 0);
  EXPECT_EQ(stand_in_.domains.min_ranks, newer ? 1 : 0);
  EXPECT_EQ(stand_in_.domains.max_ranks, newer ? 3 : 0);
}

TEST_P(TunerPlugins, ChooseByTheirTimes) {
  stand_in_.answer = [](const AskedCall& call, Table& table, std::int32_t& channels) {
    table[call.bytes < 1024 ? 1 : 0][2] = 0;
    channels = 2;
    return 0;
  };
  const auto requested = adviser();
  EXPECT_EQ(requested->ask(kPluginCall, kOurs).candidate, 2U);
  EXPECT_EQ(requested->ask(kPluginCall, kOurs).channels, 2U);
  PluginCall small = kPluginCall;
  small.block_bytes = 8;
  EXPECT_EQ(requested->ask(small, kOurs).candidate, 1U);
  small.thread_blocks = 0;
  EXPECT_EQ(requested->ask(small, kOurs).channels, 0U) << "on host memory there is one";
  EXPECT_TRUE(lines.empty());
}

TEST_P(TunerPlugins, AreNotAsked_AboutCallsThatNcclDoesNotAsk) {
  const auto requested = adviser();
  PluginCall question = kPluginCall;
  question.collective = Collective::all_to_all;
  EXPECT_TRUE(requested->ask(question, kOurs).silent());
  EXPECT_TRUE(requested->ask(kPluginCall, std::span(kOurs).first(1)).silent());
  EXPECT_EQ(stand_in_.answers, 0);
}

TEST_P(TunerPlugins, HaveContextPerCommunicator) {
  const auto first = adviser();
  auto second = adviser();
  (void)second->ask(kPluginCall, kOurs);
  EXPECT_EQ(stand_in_.requested.context, 1);
  (void)first->ask(kPluginCall, kOurs);
  EXPECT_EQ(stand_in_.requested.context, 0);
  second.reset();
  EXPECT_EQ(stand_in_.ended, 1);
}

TEST_P(TunerPlugins, AreUnused_WhenInitFails) {
  stand_in_.init_error = 3;
  EXPECT_EQ(adviser(), nullptr);
  expect_one_line("init failed with error 3");
  EXPECT_EQ(stand_in_.ended, 0);
}

TEST_P(TunerPlugins, LeaveChoice_WhenTheyFail) {
  stand_in_.answer = [](const AskedCall&, Table& table, std::int32_t& channels) {
    table[1][2] = 0;
    channels = 3;
    return 2;
  };
  const auto requested = adviser();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(requested->ask(kPluginCall, kOurs).silent());
  expect_one_line("getCollInfo failed with error 2");
}

TEST_P(TunerPlugins, LeaveChoice_WhenAnswersAreInvalid) {
  stand_in_.answer = [](const AskedCall&, Table& table, std::int32_t&) {
    table[1][2] = std::numeric_limits<float>::quiet_NaN();
    return 0;
  };
  EXPECT_TRUE(adviser()->ask(kPluginCall, kOurs).silent());
  expect_one_line("its time for Ring/Simple is not a number");
  lines.clear();
  stand_in_.answer = [](const AskedCall&, Table& table, std::int32_t&) {
    for (auto& row : table) row.fill(-1);
    return 0;
  };
  EXPECT_TRUE(adviser()->ask(kPluginCall, kOurs).silent());
  expect_one_line("exclude all candidates");
}

TEST_P(TunerPlugins, AreNamed_WhenDestroyFails) {
  stand_in_.end_error = 7;
  adviser().reset();
  expect_one_line("failed with error 7");
}

TEST_P(TunerPlugins, LogThroughTutti) {
  set_log_level(LogLevel::info);
  const auto made = adviser();
  ASSERT_FALSE(lines.empty());
  EXPECT_NE(lines[0].find("INFO tuner plugin: 4 ranks of"), std::string::npos) << lines[0];
}

TEST(TunerPluginFiles, AreFoundByNameOrPath) {
  EXPECT_EQ(error_of_open("stand_in_v5"), "");
  EXPECT_EQ(error_of_open("libnccl-tuner-stand_in_v4.so"), "");
  EXPECT_NE(error_of_open("none-of-this-name").find("libnccl-tuner-none-of-this-name.so"), std::string::npos);
}

TEST(TunerPluginFiles, AreRejected_WithoutRequiredFunctions) {
  EXPECT_NE(error_of_open("libc.so.6").find("neither ncclTunerPlugin_v5 nor"), std::string::npos);
  EXPECT_NE(error_of_open(HOLLOW).find("does not define init or getCollInfo"), std::string::npos);
}

TEST(TunerPluginFiles, AreOpenedOnce_AndNamedOnFailure) {
  lines.clear();
  set_log_level(LogLevel::warn);
  set_log_sink([](std::string_view line) { lines.emplace_back(line); });
  EXPECT_EQ(TunerPlugin::of_process(""), nullptr);
  EXPECT_EQ(TunerPlugin::of_process("none"), nullptr);
  EXPECT_TRUE(lines.empty());
  for (int i = 0; i < 2; ++i) EXPECT_EQ(TunerPlugin::of_process("libc.so.6"), nullptr);
  EXPECT_EQ(lines.size(), 1U);
  const TunerPlugin* plugin = TunerPlugin::of_process(STAND_IN_V5);
  ASSERT_NE(plugin, nullptr);
  EXPECT_EQ(TunerPlugin::of_process(STAND_IN_V5), plugin);
  EXPECT_NE(plugin->name().find("version 5"), std::string::npos) << plugin->name();
  set_log_sink(nullptr);
}

}  // namespace
}  // namespace tutti::test
