// End of communicators: all ranks together, or one after the other.
#include "tests/api/ranks.h"

namespace tutti::test {
namespace {

// Outside a group, each rank would wait for the others until the timeout.
TEST(Destroy, EndsAllRanksOfOneThread_InGroup) {
  constexpr int ranks = 5;
  for (const bool finalizes : {false, true}) {
    tutti_comm comms[ranks];
    tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
    options.timeout_ms = 20'000;
    TUTTI_EXPECT_OK(tutti_comm_create_all(ranks, &options, comms));
    std::int32_t values[ranks] = {1, 2, 3, 4, 5};
    tutti_stream stream = nullptr;
    TUTTI_EXPECT_OK(tutti_stream_create(&stream));
    TUTTI_EXPECT_OK(tutti_group_start());
    for (int i = 0; i < ranks; ++i) {
      TUTTI_EXPECT_OK(
          tutti_all_reduce(&values[i], &values[i], 1, tutti_int32, tutti_sum, comms[i], i == 2 ? stream : nullptr));
      TUTTI_EXPECT_OK(finalizes ? tutti_comm_finalize(comms[i]) : tutti_comm_destroy(comms[i]));
    }
    TUTTI_EXPECT_OK(tutti_group_end());
    for (const std::int32_t value : values) EXPECT_EQ(value, 15);
    for (const tutti_comm comm : comms)
      EXPECT_EQ(tutti_comm_destroy(comm), finalizes ? tutti_ok : tutti_invalid_argument);
    TUTTI_EXPECT_OK(tutti_stream_destroy(stream));
  }
}

// Ranks leave in any order, while others still exchange messages.
TEST(Leave, ReturnsWithoutPeers) {
  tutti_comm comms[3];
  TUTTI_EXPECT_OK(tutti_comm_create_all(3, nullptr, comms));
  TUTTI_EXPECT_OK(tutti_comm_leave(comms[1]));
  EXPECT_EQ(tutti_comm_leave(comms[1]), tutti_invalid_argument);
  std::int32_t sent = 5, received = 0;
  TUTTI_EXPECT_OK(tutti_group_start());
  TUTTI_EXPECT_OK(tutti_send(&sent, 1, tutti_int32, 2, comms[0], nullptr));
  TUTTI_EXPECT_OK(tutti_recv(&received, 1, tutti_int32, 0, comms[2], nullptr));
  TUTTI_EXPECT_OK(tutti_comm_leave(comms[0]));  // At the end of the group.
  TUTTI_EXPECT_OK(tutti_group_end());
  EXPECT_EQ(received, 5);
  EXPECT_EQ(tutti_recv(&received, 1, tutti_int32, 1, comms[2], nullptr), tutti_invalid_usage);
  EXPECT_NE(last_error().find("rank 1 finalizes or destroys the communicator"), std::string::npos) << last_error();
  TUTTI_EXPECT_OK(tutti_comm_leave(comms[2]));
  TUTTI_EXPECT_OK(tutti_comm_leave(nullptr));
}

constexpr const char* kRejected = "; a call of rank 1 was rejected: tutti_all_reduce #2: send is null but count is 4: ";

// The peers of rank 1 wait for its call until it leaves. With TCP, they do not share memory with it.
TEST(Leave, ReportsRejectedCall_ToPeers) {
  for (const char* transport : {"shm", "tcp"}) {
    for (const bool repeats : {false, true}) {
      tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
      options.timeout_ms = 20'000;
      tutti_tuning_options tuning = TUTTI_TUNING_OPTIONS_DEFAULT;
      tuning.transport = transport;
      options.tuning = &tuning;
      tutti_comm comms[3];
      TUTTI_EXPECT_OK(tutti_comm_create_all(3, &options, comms));
      std::string reports[3];
      const auto run = [&](int rank) {
        float values[4] = {};
        const auto reduce = [&](const float* send) {
          return tutti_all_reduce(send, values, 4, tutti_float32, tutti_sum, comms[rank], nullptr);
        };
        TUTTI_EXPECT_OK(reduce(values));
        if (rank == 1) {
          EXPECT_EQ(tutti_send(values, 4, tutti_float32, 3, comms[1], nullptr), tutti_invalid_argument);
          EXPECT_EQ(reduce(nullptr), tutti_invalid_argument);
          EXPECT_EQ(tutti_send(values, 4, tutti_float32, 3, comms[1], nullptr), tutti_invalid_argument);
        }
        if (repeats) {
          TUTTI_EXPECT_OK(reduce(values));
        }
        if (rank != 1) {
          EXPECT_EQ(reduce(values), tutti_invalid_usage);
          reports[rank] = last_error();
        }
        TUTTI_EXPECT_OK(tutti_comm_leave(comms[rank]));
      };
      std::vector<std::thread> threads;
      for (int rank = 0; rank < 3; ++rank) threads.emplace_back(run, rank);
      for (std::thread& thread : threads) thread.join();
      for (const int rank : {0, 2}) {
        EXPECT_NE(reports[rank].find("rank 1 finalizes or destroys the communicator"), std::string::npos);
        EXPECT_EQ(reports[rank].find(kRejected) != std::string::npos, !repeats) << transport << ": " << reports[rank];
        EXPECT_EQ(reports[rank].find("was rejected") != std::string::npos, !repeats) << reports[rank];
      }
    }
  }
}

// Data already sent stays with the peers, and so do their lanes and memory.
TEST(Leave, DoesNotWaitForSlowRanks) {
  for (int round = 0; round < 100; ++round) {
    tutti_comm comms[3];
    TUTTI_EXPECT_OK(tutti_comm_create_all(3, nullptr, comms));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 3; ++rank) {
      threads.emplace_back([&, rank] {
        std::vector<std::int32_t> values(50'000, rank + 1);
        const int root = round % 3;
        TUTTI_EXPECT_OK(
            tutti_broadcast(values.data(), values.data(), values.size(), tutti_int32, root, comms[rank], nullptr));
        EXPECT_EQ(values.back(), root + 1);
        if (rank == 0) {
          TUTTI_EXPECT_OK(tutti_send(values.data(), 30'000, tutti_int32, 1, comms[0], nullptr));
        } else if (rank == 1) {
          TUTTI_EXPECT_OK(tutti_recv(values.data(), 30'000, tutti_int32, 0, comms[1], nullptr));
        }
        TUTTI_EXPECT_OK(tutti_comm_leave(comms[rank]));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(Destroy, ReportsAbort_ToAllRanksOfGroup) {
  tutti_comm comms[3];
  TUTTI_EXPECT_OK(tutti_comm_create_all(3, nullptr, comms));
  TUTTI_EXPECT_OK(tutti_comm_abort(comms[1]));
  TUTTI_EXPECT_OK(tutti_group_start());
  for (const tutti_comm comm : comms) TUTTI_EXPECT_OK(tutti_comm_destroy(comm));
  EXPECT_EQ(tutti_group_end(), tutti_aborted);  // The other two ranks had not yet been notified.
  for (const tutti_comm comm : comms) EXPECT_EQ(tutti_comm_destroy(comm), tutti_invalid_argument);
}

// Ranks can detect unreceived messages only at the end of the communicator.
TEST(UnreceivedMessages, AreReportedByDestroyAndFinalize) {
  for (const bool finalizes : {false, true}) {
    tutti_comm comms[2];
    TUTTI_EXPECT_OK(tutti_comm_create_all(2, nullptr, comms));
    float values[2] = {};
    tutti_group_start();
    TUTTI_EXPECT_OK(tutti_send(&values[0], 1, tutti_float32, 1, comms[0], nullptr));
    TUTTI_EXPECT_OK(tutti_recv(&values[1], 1, tutti_float32, 0, comms[1], nullptr));
    TUTTI_EXPECT_OK(tutti_group_end());
    TUTTI_EXPECT_OK(tutti_send(&values[0], 1, tutti_float32, 1, comms[0], nullptr));
    std::thread peer([&] {
      EXPECT_EQ(finalizes ? tutti_comm_finalize(comms[1]) : tutti_comm_destroy(comms[1]), tutti_invalid_usage);
      EXPECT_NE(last_error().find("rank 1 did not receive 1 of 2 messages from rank 0"), std::string::npos)
          << last_error();
    });
    EXPECT_EQ(finalizes ? tutti_comm_finalize(comms[0]) : tutti_comm_destroy(comms[0]), tutti_invalid_usage);
    EXPECT_NE(last_error().find("rank 1 did not receive 1 of 2 messages"), std::string::npos) << last_error();
    peer.join();
    for (const tutti_comm comm : comms)
      EXPECT_EQ(tutti_comm_destroy(comm), finalizes ? tutti_ok : tutti_invalid_argument);
  }
}

}  // namespace
}  // namespace tutti::test
