// Files may have any origin, and up to 100,000 hosts and nodes. The time to read them and to fill them in must grow
// linearly. The test compares CPU time of the thread, for a file and one 32 times as long.
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <limits>
#include <string>

#include "src/topology/fill.h"
#include "src/topology/formats.h"

namespace tutti::test {
namespace {

constexpr std::uint32_t kTimes = 32;
constexpr double kMaxGrowth =
    10 * kTimes;           // Allows for caches, which do not grow. Quadratic growth would be 32 * kTimes.
constexpr int kTries = 3;  // Attempts, one of which must succeed.

double cpu_seconds() {
  timespec now;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

using Make = std::function<std::string(std::uint32_t)>;

std::string repeated(std::uint32_t times, const std::function<std::string(std::uint32_t)>& part) {
  std::string text;
  for (std::uint32_t i = 0; i < times; ++i) text += part(i);
  return text;
}

std::string bus_id(std::uint32_t i) {
  char text[32];
  std::snprintf(text, sizeof text, "%04x:%02x:%02x.0", i >> 16, i >> 8 & 0xff, i & 0xff);
  return text;
}

std::string pci(std::uint32_t i, const std::string& more, const std::string& inside = "") {
  return "<pci busid=\"" + bus_id(i) + "\" class=\"0x030200\"" + more + ">" + inside + "</pci>";
}

// Returns `count` hosts, each with these nodes below its processor.
std::string hosts(std::uint32_t count, const std::string& inside) {
  const auto host = [&](std::uint32_t i) {
    return "<cpu numaid=\"0\" host_hash=\"" + std::to_string(i) + "\">" + inside + "</cpu>";
  };
  return "<system version=\"1\">" + repeated(count, host) + "</system>";
}

// Returns one host with `count` devices below its processor.
std::string devices(std::uint32_t count, const std::function<std::string(std::uint32_t)>& device) {
  return "<system version=\"1\"><cpu numaid=\"0\">" + repeated(count, device) + "</cpu></system>";
}

class ReadingTime : public testing::Test {
 protected:
  // Stores the larger topology in `topology_`, or the error in `why_not_`.
  void expect_linear(std::uint32_t small, const Make& make) {
    const std::string one = make(small), other = make(kTimes * small);
    double one_s = std::numeric_limits<double>::infinity(), other_s = one_s;
    for (int i = 0; i < kTries && (i == 0 || other_s > kMaxGrowth * one_s); ++i) {
      one_s = std::min(one_s, seconds_of(one));
      other_s = std::min(other_s, seconds_of(other));
    }
    std::printf("%u times as long: %.1f times %.3f ms\n", kTimes, other_s / one_s, 1e3 * one_s);
    EXPECT_LE(other_s, kMaxGrowth * one_s);
  }

  Topology topology_;
  std::string why_not_;

 private:
  double seconds_of(const std::string& text) {
    const double begin = cpu_seconds();
    Result<Topology> read = read_topology(text, "f");
    if (read.ok()) fill_in(read.value());
    const double took = cpu_seconds() - begin;
    if (read.ok()) topology_ = std::move(read).value();
    else why_not_ = std::move(read).status().message();
    return took;
  }
};

TEST_F(ReadingTime, GrowsLinearly_WithKeysOfObject) {
  expect_linear(1'000, [](std::uint32_t count) {
    const auto key = [](std::uint32_t i) { return "\"k" + std::to_string(i) + "\": 0, "; };
    return "{" + repeated(count, key) + "\"format\": \"tutti topology\"}";
  });
  EXPECT_EQ(why_not_, "f: the topology has the unknown key \"k0\"");
}

TEST_F(ReadingTime, GrowsLinearly_WithHosts) {
  expect_linear(3'000, [](std::uint32_t count) { return hosts(count, ""); });  // 96,000 of 100,000.
  EXPECT_EQ(topology_.nodes.size(), 3'000 * kTimes) << why_not_;
}

TEST_F(ReadingTime, GrowsLinearly_WithNotesPerHost) {
  expect_linear(1'000, [](std::uint32_t count) { return hosts(count, pci(0, "") + pci(1, "")); });
  EXPECT_EQ(topology_.notes.size(), 1'000 * kTimes) << why_not_;
}

TEST_F(ReadingTime, GrowsLinearly_WithBoards) {
  const auto gpu = [](std::uint32_t i) { return pci(i, " vendor=\"0x10de\" device=\"0x2330\""); };
  expect_linear(300, [&](std::uint32_t count) { return hosts(count, repeated(8, gpu)); });
  EXPECT_EQ(topology_.all(NodeKind::nvswitch).size(), 300 * kTimes) << why_not_;
}

TEST_F(ReadingTime, GrowsLinearly_WithNicsWithoutSpeed) {
  expect_linear(1'000, [](std::uint32_t count) {
    return devices(count, [](std::uint32_t i) { return "<nic><net name=\"n" + std::to_string(i) + "\"/></nic>"; });
  });
  EXPECT_EQ(topology_.notes.size(), 1'000 * kTimes) << why_not_;
}

TEST_F(ReadingTime, GrowsLinearly_WithC2cGpus) {
  expect_linear(1'000, [](std::uint32_t count) {
    return devices(count, [](std::uint32_t i) {
      return pci(i, "",
                 "<gpu sm=\"90\"><c2c bw=\"1000\"/><nvlink target=\"0:0\" count=\"1\" tclass=\"0x068001\"/></gpu>");
    });
  });
  EXPECT_EQ(topology_.links.size(), 3'000 * kTimes) << why_not_;
}

}  // namespace
}  // namespace tutti::test
