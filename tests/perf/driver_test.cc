// The driver shared by all libraries under test: its work around the calls that it times.
#include "perf/peers/driver.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

std::vector<float> inputs;  // The first element of each call; -1 if the other elements differ from it.
int barriers = 0;

void run(const driver_call* call) {
  bool same = true;
  for (std::size_t i = 1; i < call->count; ++i) same = same && call->send[i] == call->send[0];
  inputs.push_back(same ? call->send[0] : -1);
  // Doubles the values, in place of a second rank.
  for (std::size_t i = 0; i < call->count; ++i) call->recv[i] = call->send[i] * 2;
}

void barrier() { ++barriers; }

// Returns the answers of one rank to the commands.
std::string serve(const std::string& commands) {
  char folder[] = "/tmp/tutti-driver-XXXXXX";
  if (::mkdtemp(folder) == nullptr) return "no folder";
  const std::string path = folder;
  std::ofstream(path + "/command.0") << commands;
  inputs.clear();
  barriers = 0;
  driver self = {folder, 0, 1, 0, nullptr, run, barrier, 0};
  const int result = driver_serve(&self);
  std::stringstream answers;
  answers << std::ifstream(path + "/answer.0").rdbuf();
  std::filesystem::remove_all(path);
  return result == 0 ? answers.str() : "failed";
}

TEST(BenchmarkDriver, FillsInputOfEveryLargeCall) {
  serve("run all_reduce 16384 0 3 2 0\nquit\n");
  EXPECT_EQ(inputs, (std::vector<float>{1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(barriers, 6);
}

TEST(BenchmarkDriver, MakesSmallCallsBackToBack) {
  serve("run all_reduce 8192 0 3 2 0\nquit\n");
  EXPECT_EQ(inputs.size(), 6U);
  EXPECT_EQ(barriers, 2);
}

TEST(BenchmarkDriver, ReportsTimePerRepetition_AfterWarmups) {
  std::istringstream answers(serve("run all_reduce 16384 4 2 3 0\nquit\n"));
  std::string ready, word;
  answers >> ready;
  EXPECT_EQ(ready, "ready");
  for (int i = 0; i < 3; ++i) {
    answers >> word;
    EXPECT_GT(std::strtod(word.c_str(), nullptr), 0);
  }
  answers >> word;
  EXPECT_EQ(word, "wrong");
  EXPECT_EQ(inputs.size(), 4U + 2 * 3);
}

TEST(BenchmarkDriver, DetectsWrongSums) {
  const std::string answers = serve("run all_reduce 32 0 1 1 1\nquit\n");
  const auto wrong = std::stoul(answers.substr(answers.find("wrong ") + 6));
  EXPECT_EQ(wrong, 7U);  // Doubled: of 8 elements only the zero is correct.
}

}  // namespace
