#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/api/ranks.h"

namespace tutti {
namespace {

using Vector = std::vector<std::int32_t>;

// Of mapped memory, of what was forced through another handle, and of a call that had nothing to do.
TEST(Choices, AreThoseOfTheLastCollective) {
  const Ranks ranks(4);
  ranks.run([](int, tutti_comm comm) {
    tutti_comm_options forced = TUTTI_COMM_OPTIONS_DEFAULT;
    forced.algorithm = "bruck";  // An all-reduce has none of this name.
    forced.protocol = "lines";
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
    EXPECT_EQ(last(comm), "bruck/lines");
    EXPECT_EQ(last(view), "bruck/lines");
    TUTTI_EXPECT_OK(tutti_all_reduce(send.data(), recv.data(), send.size(), tutti_int32, tutti_sum, comm, nullptr));
    EXPECT_EQ(last(comm), "two_shot_mapped/");  // Threads see each other's memory.
    TUTTI_EXPECT_OK(tutti_all_gather(send.data(), recv.data(), 3, tutti_int32, view, nullptr));
    EXPECT_EQ(last(comm), "bruck/lines");
    TUTTI_EXPECT_OK(tutti_all_reduce(send.data(), recv.data(), 3, tutti_int32, tutti_sum, view, nullptr));
    EXPECT_NE(last(comm), "bruck/lines");
    TUTTI_EXPECT_OK(tutti_all_gather(nullptr, nullptr, 0, tutti_int32, view, nullptr));
    EXPECT_EQ(last(comm), "/");
  });
}

// More shapes than calls are kept for, so that what is asked for goes away.
TEST(Choices, MayBeAskedForByAnyThread) {
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

TEST(Choices, AreNamedByCollective) {
  const char* names = nullptr;
  TUTTI_EXPECT_OK(tutti_algorithms("reduce", &names));
  EXPECT_STREQ(names, "binary_tree, chain, direct");
  EXPECT_EQ(tutti_algorithms("alltoall", &names), tutti_invalid_argument);
  EXPECT_NE(last_error().find("all_to_all, gather"), std::string::npos) << last_error();
  EXPECT_EQ(tutti_algorithms(nullptr, &names), tutti_invalid_argument);
  EXPECT_EQ(tutti_algorithms("reduce", nullptr), tutti_invalid_argument);
}

}  // namespace
}  // namespace tutti
