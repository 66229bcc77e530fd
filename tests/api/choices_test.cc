#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/api/ranks.h"

namespace tutti::test {
namespace {

using Vector = std::vector<std::int32_t>;

// tutti_comm_last_choice() with mapped memory, with a choice forced through another handle, and after an empty call.
TEST(LastChoice, DescribesLastCollective) {
  const Ranks ranks(4);
  ranks.run([](int, tutti_comm comm) {
    tutti_comm_options forced = TUTTI_COMM_OPTIONS_DEFAULT;
    tutti_tuning_options tuning = TUTTI_TUNING_OPTIONS_DEFAULT;
    tuning.algorithm = "bruck";  // all_reduce has no algorithm of this name.
    tuning.protocol = "LL";
    forced.tuning = &tuning;
    tutti_comm view = nullptr;
    TUTTI_EXPECT_OK(tutti_comm_with_options(comm, &forced, &view));
    const auto last = [&](tutti_comm handle) {
      const char *algorithm = nullptr, *protocol = nullptr;
      TUTTI_EXPECT_OK(tutti_comm_last_choice(handle, &algorithm, &protocol));
      return std::string(algorithm) + "/" + protocol;
    };
    Vector send(1 << 16), recv(4 << 16);
    EXPECT_EQ(last(comm), "/");
    TUTTI_EXPECT_OK(tutti_all_gather(send.data(), recv.data(), 3, tutti_int32, view, nullptr));
    EXPECT_EQ(last(comm), "bruck/LL");
    EXPECT_EQ(last(view), "bruck/LL");
    TUTTI_EXPECT_OK(tutti_all_reduce(send.data(), recv.data(), send.size(), tutti_int32, tutti_sum, comm, nullptr));
    EXPECT_EQ(last(comm), "two_shot_mapped/");  // Threads share their memory.
    TUTTI_EXPECT_OK(tutti_all_gather(send.data(), recv.data(), 3, tutti_int32, view, nullptr));
    EXPECT_EQ(last(comm), "bruck/LL");
    TUTTI_EXPECT_OK(tutti_all_reduce(send.data(), recv.data(), 3, tutti_int32, tutti_sum, view, nullptr));
    EXPECT_NE(last(comm), "bruck/LL");
    TUTTI_EXPECT_OK(tutti_all_gather(nullptr, nullptr, 0, tutti_int32, view, nullptr));
    EXPECT_EQ(last(comm), "/");
  });
}

// Each rank predicts separately, for the algorithm that it would run.
TEST(GroupSimulation, PredictsSameTimeOnAllRanks) {
  const Ranks ranks(4);
  Vector send(1 << 16), recv(4 << 16);
  const auto predicted = [&](tutti_comm comm, std::size_t count) {
    double time_us = -1;
    TUTTI_EXPECT_OK(tutti_group_start());
    TUTTI_EXPECT_OK(tutti_all_gather(send.data(), recv.data(), count, tutti_int32, comm, nullptr));
    TUTTI_EXPECT_OK(tutti_group_simulate_end(&time_us));
    return time_us;
  };
  const double small_us = predicted(ranks[2], 1), large_us = predicted(ranks[2], 1 << 16);
  EXPECT_GT(small_us, 0);
  EXPECT_GT(large_us, 2 * small_us);
  EXPECT_EQ(predicted(ranks[0], 1 << 16), large_us);
  tutti_comm_options forced = TUTTI_COMM_OPTIONS_DEFAULT;
  tutti_tuning_options tuning = TUTTI_TUNING_OPTIONS_DEFAULT;
  tuning.algorithm = "ring";
  forced.tuning = &tuning;
  tutti_comm view = nullptr;
  TUTTI_EXPECT_OK(tutti_comm_with_options(ranks[2], &forced, &view));
  EXPECT_GT(predicted(view, 1 << 16), large_us) << "rings have more rounds";
  const char *algorithm = nullptr, *protocol = nullptr;
  TUTTI_EXPECT_OK(tutti_comm_last_choice(ranks[2], &algorithm, &protocol));
  EXPECT_STREQ(algorithm, "") << "nothing has run";
}

// Mapped algorithms send no messages, and run with any protocol.
TEST(GroupSimulation, PredictsTime_OfMappedCallWithForcedProtocol) {
  constexpr std::size_t kCount = 1 << 16;
  const Ranks ranks(2);
  void* memory = nullptr;
  TUTTI_EXPECT_OK(tutti_mem_alloc(&memory, kCount * sizeof(float)));
  std::vector<double> times_us;
  for (const char* protocol : {"", "LL", "Simple"}) {
    tutti_comm_options forced = TUTTI_COMM_OPTIONS_DEFAULT;
    tutti_tuning_options tuning = TUTTI_TUNING_OPTIONS_DEFAULT;
    tuning.algorithm = "two_shot_mapped";
    tuning.protocol = protocol;
    forced.tuning = &tuning;
    tutti_comm view = nullptr;
    TUTTI_EXPECT_OK(tutti_comm_with_options(ranks[0], &forced, &view));
    double& time_us = times_us.emplace_back(-1);
    TUTTI_EXPECT_OK(tutti_group_start());
    TUTTI_EXPECT_OK(tutti_all_reduce(memory, memory, kCount, tutti_float32, tutti_sum, view, nullptr));
    EXPECT_EQ(tutti_group_simulate_end(&time_us), tutti_ok) << protocol << ": " << last_error();
    TUTTI_EXPECT_OK(tutti_comm_destroy(view));
  }
  EXPECT_GT(times_us[0], 0);
  EXPECT_EQ(times_us, std::vector<double>(3, times_us[0]));
  TUTTI_EXPECT_OK(tutti_mem_free(memory));
}

TEST(GroupSimulation, RejectsMessages) {
  const Ranks ranks(2);
  std::int32_t value = 1;
  double time_us = -1;
  TUTTI_EXPECT_OK(tutti_group_start());
  TUTTI_EXPECT_OK(tutti_send(&value, 1, tutti_int32, 1, ranks[0], nullptr));
  EXPECT_EQ(tutti_group_simulate_end(&time_us), tutti_unsupported);
  EXPECT_NE(last_error().find("predictions exist for collectives only"), std::string::npos) << last_error();
  EXPECT_EQ(time_us, -1);
}

// Makes calls of more shapes than the library caches, so that the queried choice is evicted.
TEST(LastChoice, MayBeQueriedByAnyThread) {
  const Ranks ranks(2);
  ranks.run([](int, tutti_comm comm) {
    std::atomic<bool> over = false;
    std::set<std::string> seen;
    std::thread asks([&] {
      while (!over) {
        const char *algorithm = nullptr, *protocol = nullptr;
        TUTTI_EXPECT_OK(tutti_comm_last_choice(comm, &algorithm, &protocol));
        seen.insert(algorithm);
      }
    });
    Vector send(4096), recv(4096);
    for (std::size_t count = 0; count < send.size(); count += 4)
      TUTTI_EXPECT_OK(tutti_all_reduce(send.data(), recv.data(), count, tutti_int32, tutti_sum, comm, nullptr));
    over = true;
    asks.join();
    const char* names = nullptr;
    TUTTI_EXPECT_OK(tutti_algorithms("all_reduce", &names));
    for (const std::string& name : seen) EXPECT_NE(std::string(names).find(name), std::string::npos) << name;
  });
}

// Copy engines are for GPUs. A request for them changes nothing in host memory.
TEST(Algorithms, MayRequestCopyEngines) {
  const char* names = nullptr;
  TUTTI_EXPECT_OK(tutti_algorithms("all_gather", &names));
  EXPECT_NE(std::string(names).find(", copy_engines"), std::string::npos) << names;
  TUTTI_EXPECT_OK(tutti_algorithms("all_reduce", &names));
  EXPECT_EQ(std::string(names).find("copy_engines"), std::string::npos) << names;
  const Ranks ranks(2);
  ranks.run([](int rank, tutti_comm comm) {
    tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
    tutti_tuning_options tuning = TUTTI_TUNING_OPTIONS_DEFAULT;
    tuning.algorithm = "copy_engines";
    options.tuning = &tuning;
    tutti_comm view = nullptr;
    TUTTI_EXPECT_OK(tutti_comm_with_options(comm, &options, &view));
    const Vector send(100, rank);
    Vector recv(200);
    TUTTI_EXPECT_OK(tutti_all_gather(send.data(), recv.data(), 100, tutti_int32, view, nullptr));
    EXPECT_EQ(recv[100], 1);
    const char *algorithm = "", *protocol = "";
    TUTTI_EXPECT_OK(tutti_comm_last_choice(comm, &algorithm, &protocol));
    EXPECT_STRNE(algorithm, "copy_engines");
  });
}

TEST(Algorithms, AreListedByCollective) {
  const char* names = nullptr;
  TUTTI_EXPECT_OK(tutti_algorithms("reduce", &names));
  EXPECT_STREQ(names, "binary_tree, chain, direct, hierarchical, hierarchical_tree");
  EXPECT_EQ(tutti_algorithms("alltoall", &names), tutti_invalid_argument);
  EXPECT_NE(last_error().find("did you mean all_to_all?"), std::string::npos) << last_error();
  EXPECT_EQ(tutti_algorithms(nullptr, &names), tutti_invalid_argument);
  EXPECT_EQ(last_error(), "tutti_algorithms: collective is null: pass a name, such as \"all_reduce\"");
  EXPECT_EQ(tutti_algorithms("reduce", nullptr), tutti_invalid_argument);
}

}  // namespace
}  // namespace tutti::test
