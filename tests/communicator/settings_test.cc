// What of a process's settings is refused before there is a communicator.
#include "src/communicator/joining/settings.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace tutti {
namespace {

Config config_of(std::map<std::string, std::string> variables) {
  return read_config(Environment(std::move(variables))).config;
}

std::vector<std::string> refused(const Config& config) { return refused_settings(Environment({}), config); }

TEST(Settings, NameATransport) {
  for (const char* transport : {"", "shm", "tcp"})
    EXPECT_EQ(refused(config_of({{"TUTTI_TRANSPORT", transport}})), std::vector<std::string>()) << transport;
  const auto pigeons = refused(config_of({{"TUTTI_TRANSPORT", "pigeons"}}));
  ASSERT_EQ(pigeons.size(), 1U);
  EXPECT_EQ(pigeons[0].find("TUTTI_TRANSPORT is \"pigeons\", but must be one of shm, tcp"), 0U) << pigeons[0];
}

TEST(Settings, OnHostMemoryAskForNothingOfGpus) {
  EXPECT_EQ(refused_on_host_memory(config_of({})), std::vector<std::string>());
  EXPECT_EQ(refused_on_host_memory(config_of({{"TUTTI_PROTOCOL", "lines"}, {"TUTTI_CHANNELS", "1"}})),
            std::vector<std::string>());
  const auto both = refused_on_host_memory(config_of({{"TUTTI_PROTOCOL", "rows"}, {"TUTTI_CHANNELS", "3"}}));
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].find("protocol rows is for GPUs"), 0U) << both[0];
  EXPECT_EQ(both[1].find("3 channels: there is 1 on host memory"), 0U) << both[1];
  EXPECT_EQ(refused(config_of({{"TUTTI_PROTOCOL", "rows"}, {"TUTTI_CHANNELS", "3"}})), std::vector<std::string>());
}

TEST(Settings, OfNcclAreLeftOpenWhereTheyCannotBe) {
  EXPECT_EQ(refused_on_host_memory(config_of({{"NCCL_PROTO", "LL128"}})), std::vector<std::string>());
}

}  // namespace
}  // namespace tutti
