// Randomly damaged files: each is read or rejected, and topologies that are read are valid. Sanitizers detect other
// errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "src/topology/describe.h"
#include "src/topology/draw.h"
#include "src/topology/fill.h"
#include "src/topology/plain_text.h"
#include "tests/topology/read_file.h"

namespace tutti::test {
namespace {

constexpr int kMutants = 5000;  // Per file and format.

class FuzzedFiles : public testing::Test {
 protected:
  std::uint32_t seed_ = static_cast<std::uint32_t>(testing::UnitTest::GetInstance()->random_seed());

  FuzzedFiles() {
    if (seed_ == 0) seed_ = std::random_device()();  // To repeat: --gtest_shuffle --gtest_random_seed=N
    random_.seed(seed_);
    std::printf("seed %u\n", seed_);
  }

  std::size_t below(std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_); }

  // A few bytes changed, a part omitted, doubled or replaced by one from elsewhere.
  std::string mutant(const std::string& text) {
    std::string changed = text;
    const std::size_t times = 1 + below(6);
    for (std::size_t i = 0; i < times && !changed.empty(); ++i) {
      const std::size_t at = below(changed.size());
      const std::size_t length = std::min(changed.size() - at, 1 + below(below(2) == 0 ? 4 : 200));
      switch (below(6)) {
        case 0: changed[at] = static_cast<char>(below(256)); break;
        case 1: changed[at] = "0123456789xfe-+.\"<>{}[]:,/ "[below(27)]; break;
        case 2: changed.erase(at, length); break;
        case 3: changed.insert(at, changed.substr(below(changed.size()), length)); break;
        case 4: changed.replace(at, length, text, below(text.size()), length); break;
        case 5: changed.resize(at); break;
      }
    }
    return changed;
  }

  void try_all(const std::string& text, const char* origin) {
    int read = 0;
    for (int i = 0; i < kMutants; ++i) {
      Result<Topology> topology = read_topology(mutant(text), origin);
      if (!topology.ok()) {
        const std::string why = std::move(topology).status().message();
        EXPECT_TRUE(why.starts_with(origin)) << "seed " << seed_ << ": " << why;
        continue;
      }
      ++read;
      fill_in(topology.value());
      const Status sound = check(topology.value());
      ASSERT_TRUE(sound.ok()) << "seed " << seed_ << ": " << sound.message();
      if (i % 50 != 0) continue;
      EXPECT_FALSE((describe(topology.value()) + draw_svg(topology.value())).empty());
      EXPECT_TRUE(write_nccl_xml(topology.value()).ok());
      const std::string pictures = draw_svg(topology.value()) + draw_dot(topology.value());
      EXPECT_EQ(plain_lines_until(pictures), pictures.size()) << "seed " << seed_;
      const std::string json = write_topology_json(topology.value()).value();
      Result<Topology> again = read_topology(json, "again");
      ASSERT_TRUE(again.ok()) << "seed " << seed_ << ": " << std::move(again).status().message();
      EXPECT_EQ(write_topology_json(again.value()).value(), json) << "seed " << seed_;
      const std::vector<Node>& nodes =
          topology.value().nodes;  // Nodes of several hosts alternate: they are read back sorted by hosts.
      const auto by_hosts = [](const Node& a, const Node& b) { return a.host < b.host; };
      if (!std::is_sorted(nodes.begin(), nodes.end(), by_hosts)) continue;
      EXPECT_TRUE(again.value() == topology.value()) << "seed " << seed_;
    }
    // If all mutants were rejected, the test would reach only the readers' first checks.
    EXPECT_GT(read, 0) << "seed " << seed_;
  }

  std::mt19937 random_;
};

TEST_F(FuzzedFiles, AreReadOrRejected) {
  std::vector<const char*> files(std::begin(kFiles), std::end(kFiles));
  files.push_back(kOddFile);
  for (const char* file : files) {
    try_all(text_of(file), "xml");
    const Topology topology = topology_of(file);
    try_all(write_topology_json(topology).value(), "json");
    try_all(write_nccl_xml(topology).value(), "nccl");
  }
}

}  // namespace
}  // namespace tutti::test
