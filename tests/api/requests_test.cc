// Messages with tags through the C API.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/api/processes.h"
#include "tests/api/requests.h"

namespace tutti::test {
namespace {

TEST(Requests, DescribeMessage) {
  const Values values;
  const Ranks ranks(2);
  for (const std::size_t count : {std::size_t{0}, std::size_t{7}, kLarge}) {
    const std::vector<std::int32_t> sent = values.of(0, count);
    std::vector<std::int32_t> received(count);
    tutti_message message = TUTTI_MESSAGE_DEFAULT;
    int found = 1;
    TUTTI_EXPECT_OK(tutti_iprobe(0, 5, ranks[1], &found, &message));
    EXPECT_EQ(found, 0);
    const tutti_request send = isend(sent, 1, 5, ranks[0]);
    while (found == 0 && !HasFailure()) TUTTI_EXPECT_OK(tutti_iprobe(TUTTI_ANY_RANK, 5, ranks[1], &found, &message));
    EXPECT_EQ(message.count, count);
    message = TUTTI_MESSAGE_DEFAULT;
    EXPECT_EQ(outcome(irecv(received, TUTTI_ANY_RANK, 5, ranks[1]), &message), "ok");
    EXPECT_EQ(received, sent);
    EXPECT_EQ(message.peer, 0);
    EXPECT_EQ(message.tag, 5U);
    EXPECT_EQ(message.count, count);
    EXPECT_EQ(outcome(send, &message), "ok");
    EXPECT_EQ(message.peer, 1);
  }
}

TEST(Requests, StayIncomplete_UntilMessageArrives) {
  const Ranks ranks(2);
  std::vector<std::int32_t> received(1);
  const tutti_request receive = irecv(received, 1, 0, ranks[0]);
  EXPECT_EQ(tutti_request_wait(receive, 0, nullptr), tutti_in_progress);
  EXPECT_EQ(tutti_request_wait(receive, 1, nullptr), tutti_in_progress);
  const std::vector<std::int32_t> sent = {42};
  const tutti_request send = isend(sent, 0, 0, ranks[1]);
  TUTTI_EXPECT_OK(tutti_request_wait(receive, -1, nullptr));
  TUTTI_EXPECT_OK(tutti_request_wait(receive, 0, nullptr));
  EXPECT_EQ(received, sent);
  EXPECT_EQ(outcome(receive), "ok");
  EXPECT_EQ(outcome(send), "ok");
}

TEST(Requests, TransferAllTypes) {
  const Ranks ranks(1);
  for (int type = tutti_int8; type <= tutti_complex128; ++type) {
    const std::vector<std::int64_t> sent = {type + 1, type + 2, type + 3, type + 4};  // Two elements of 16 bytes.
    std::vector<std::int64_t> received(4);
    tutti_request requests[2];
    TUTTI_EXPECT_OK(tutti_isend(sent.data(), 2, static_cast<tutti_type>(type), 0, 1, ranks[0], &requests[0]));
    TUTTI_EXPECT_OK(tutti_irecv(received.data(), 2, static_cast<tutti_type>(type), 0, 1, ranks[0], &requests[1]));
    for (const tutti_request request : requests) EXPECT_EQ(outcome(request), "ok");
    EXPECT_EQ(static_cast<char>(received[0]), static_cast<char>(sent[0])) << type;
  }
}

TEST(Requests, RunBesideCollectivesAndSends) {
  constexpr int kRounds = 50;
  const Values values;
  const Ranks ranks(2);
  ranks.run([&](int rank, tutti_comm comm) {
    std::thread other([&] {
      for (std::uint64_t round = 0; round < kRounds; ++round) {
        const std::size_t count = round % 5 == 0 ? kLarge : 10;
        std::vector<std::int32_t> received(count);
        const std::vector<std::int32_t> sent = values.of(rank, count);
        const tutti_request receive = irecv(received, 1 - rank, round, comm);
        const tutti_request send = isend(sent, 1 - rank, round, comm);
        EXPECT_EQ(outcome(receive), "ok");
        EXPECT_EQ(outcome(send), "ok");
        EXPECT_EQ(received, values.of(1 - rank, count));
      }
    });
    std::vector<std::int32_t> sum(1000);
    for (int round = 0; round < kRounds; ++round) {
      sum.assign(sum.size(), round);
      TUTTI_EXPECT_OK(tutti_all_reduce(sum.data(), sum.data(), sum.size(), tutti_int32, tutti_sum, comm, nullptr));
      EXPECT_EQ(sum[999], 2 * round);
    }
    other.join();
  });
}

TEST(Requests, DoNotMatchAcrossCommunicators_AfterSplitAndShrink) {
  const Ranks ranks(3);
  std::vector<tutti_comm> split(3), again(3), shrunk(3);
  ranks.run([&](int rank, tutti_comm comm) {
    TUTTI_EXPECT_OK(tutti_comm_split(comm, 0, 0, nullptr, &split[rank]));
    TUTTI_EXPECT_OK(tutti_comm_split(comm, 0, 0, nullptr, &again[rank]));
    const int excluded[] = {2};
    if (rank != 2) {
      TUTTI_EXPECT_OK(tutti_comm_shrink(split[rank], excluded, 1, nullptr, &shrunk[rank]));
    }
  });
  const std::vector<std::int32_t> sent = {1};
  std::vector<std::int32_t> received = {0};
  const tutti_request send = isend(sent, 1, 7, ranks[0]);
  exchange(split[0], split[1], 7, 2);
  exchange(again[0], again[1], 7, 3);
  exchange(shrunk[0], shrunk[1], 7, 4);
  exchange(split[1], split[2], 7, 5);
  EXPECT_EQ(outcome(irecv(received, 0, 7, ranks[1])), "ok");
  EXPECT_EQ(received, sent);
  EXPECT_EQ(outcome(send), "ok");
  ranks.run([&](int rank, tutti_comm) {
    if (rank != 2) {
      TUTTI_EXPECT_OK(tutti_comm_destroy(shrunk[rank]));
    }
    TUTTI_EXPECT_OK(tutti_comm_destroy(split[rank]));
    TUTTI_EXPECT_OK(tutti_comm_destroy(again[rank]));
  });
}

TEST(Requests, EndWithErrorOfCommunicator_WhenItIsAborted) {
  std::vector<tutti_comm> comms(2);
  TUTTI_EXPECT_OK(tutti_comm_create_all(2, nullptr, comms.data()));
  std::vector<std::int32_t> received(1);
  const tutti_request receive = irecv(received, TUTTI_ANY_RANK, 7, comms[1]);
  TUTTI_EXPECT_OK(tutti_comm_abort(comms[0]));
  EXPECT_EQ(tutti_request_wait(receive, kHangMs, nullptr), tutti_aborted);
  EXPECT_EQ(last_error(), "tutti_request_wait: rank 0 aborted the communicator");
  tutti_request late = nullptr;
  EXPECT_EQ(tutti_irecv(received.data(), 1, tutti_int32, 0, 7, comms[1], &late), tutti_aborted);
  for (const tutti_comm comm : comms) TUTTI_EXPECT_OK(tutti_comm_destroy(comm));  // Does not return the failure again.
  EXPECT_EQ(tutti_request_wait(receive, 0, nullptr), tutti_aborted);              // Outlives the communicator.
  TUTTI_EXPECT_OK(tutti_request_destroy(receive));
}

// Calls of messages with tags report the failure of a communicator, so that its destruction does not return it again.
TEST(Requests, ReportFailureOfCommunicator) {
  int value = 0, found = 0;
  const std::vector<std::function<tutti_status(tutti_comm, tutti_request*)>> calls = {
      [&](tutti_comm comm, tutti_request* made) { return tutti_isend(&value, 1, tutti_int32, 0, 7, comm, made); },
      [&](tutti_comm comm, tutti_request* made) { return tutti_irecv(&value, 1, tutti_int32, 0, 7, comm, made); },
      [&](tutti_comm comm, tutti_request*) { return tutti_iprobe(0, 7, comm, &found, nullptr); }};
  for (std::size_t i = 0; i < calls.size(); ++i) {
    std::vector<tutti_comm> comms(2);
    TUTTI_EXPECT_OK(tutti_comm_create_all(2, nullptr, comms.data()));
    TUTTI_EXPECT_OK(tutti_comm_abort(comms[0]));
    tutti_request request = nullptr;
    tutti_status status = tutti_ok;
    while ((status = calls[i](comms[1], &request)) == tutti_ok) {  // Another host has not been notified yet.
      TUTTI_EXPECT_OK(tutti_request_destroy(std::exchange(request, nullptr)));
    }
    EXPECT_EQ(status, tutti_aborted) << i;
    for (const tutti_comm comm : comms) EXPECT_EQ(tutti_comm_destroy(comm), tutti_ok) << i;
  }
}

TEST(Requests, LeaveFailureOfCommunicatorToDestroy_WhenTheyEndWithAnotherError) {
  std::vector<tutti_comm> comms(2);
  TUTTI_EXPECT_OK(tutti_comm_create_all(2, nullptr, comms.data()));
  std::vector<std::int32_t> received(2);
  const tutti_request receive = irecv(received, 0, 7, comms[1]);
  EXPECT_EQ(outcome(isend({1}, 1, 7, comms[0])), "ok");
  EXPECT_EQ(tutti_request_wait(receive, kHangMs, nullptr), tutti_invalid_usage);  // The counts differ.
  TUTTI_EXPECT_OK(tutti_comm_abort(comms[0]));
  EXPECT_EQ(tutti_request_wait(receive, kHangMs, nullptr), tutti_invalid_usage);
  TUTTI_EXPECT_OK(tutti_comm_destroy(comms[0]));
  EXPECT_EQ(tutti_comm_destroy(comms[1]), tutti_aborted);
  TUTTI_EXPECT_OK(tutti_request_destroy(receive));
}

TEST(Requests, EndWithInvalidUsage_WhenCommunicatorIsDestroyed) {
  std::vector<std::int32_t> received(1);
  tutti_request receive = nullptr;
  {
    const Ranks ranks(2);
    receive = irecv(received, 0, 7, ranks[1]);
  }
  EXPECT_EQ(tutti_request_wait(receive, 0, nullptr), tutti_invalid_usage);
  EXPECT_EQ(last_error(),
            "tutti_request_wait: irecv(1 int32, from rank 0, tag 7) was not complete when the communicator ended: wait "
            "for requests before you finalize or destroy it");
  TUTTI_EXPECT_OK(tutti_request_destroy(receive));
}

TEST(Requests, AreRefused_WhenAnotherThreadDestroysCommunicator) {
  std::vector<tutti_comm> comms(2);
  TUTTI_EXPECT_OK(tutti_comm_create_all(2, nullptr, comms.data()));
  std::atomic<int> rounds = 0;
  tutti_status refused = tutti_ok;
  std::thread other([&, comm = comms[0]] {
    int received = 0, found = 0;
    while (refused != tutti_invalid_argument) {  // The handle is not valid any more.
      tutti_request request = nullptr;
      refused = tutti_irecv(&received, 1, tutti_int32, 1, 7, comm, &request);
      if (refused == tutti_ok) tutti_request_destroy(request);
      tutti_iprobe(1, 7, comm, &found, nullptr);
      ++rounds;
    }
  });
  while (rounds < 3) std::this_thread::yield();
  for (const tutti_comm comm : comms) TUTTI_EXPECT_OK(tutti_comm_leave(comm));
  other.join();
}

TEST(Requests, ReceiveMessages_AfterSenderHasLeft) {
  std::vector<tutti_comm> comms(2);
  TUTTI_EXPECT_OK(tutti_comm_create_all(2, nullptr, comms.data()));
  const std::vector<std::int32_t> sent = {3};
  std::vector<std::int32_t> received = {0};
  const tutti_request posted = irecv(received, 0, 6, comms[1]);
  EXPECT_EQ(outcome(isend(sent, 1, 7, comms[0])), "ok");
  TUTTI_EXPECT_OK(tutti_comm_leave(comms[0]));
  EXPECT_EQ(outcome(posted),
            "tutti_request_wait: rank 0 has left the communicator: complete all messages with a rank before it "
            "finalizes or destroys the communicator");
  EXPECT_EQ(outcome(irecv(received, 0, 7, comms[1])), "ok");
  EXPECT_EQ(received, sent);
  TUTTI_EXPECT_OK(tutti_comm_destroy(comms[1]));
}

TEST(Requests, SendNothing_WhenAllHandlesAreInUse) {
  const Ranks ranks(1);
  std::vector<std::int32_t> value = {1};
  std::vector<tutti_request> requests;
  tutti_request request = nullptr;
  while (tutti_irecv(value.data(), 1, tutti_int32, 0, 7, ranks[0], &request) == tutti_ok) requests.push_back(request);
  EXPECT_EQ(requests.size(), 65536U);
  EXPECT_EQ(tutti_isend(value.data(), 1, tutti_int32, 0, 8, ranks[0], &request), tutti_invalid_usage);
  EXPECT_EQ(last_error(), "tutti_isend: all 65536 handles of this kind are in use: destroy some");
  int found = 1;
  TUTTI_EXPECT_OK(tutti_iprobe(0, 8, ranks[0], &found, nullptr));
  EXPECT_EQ(found, 0);
  for (const tutti_request each : requests) TUTTI_EXPECT_OK(tutti_request_destroy(each));
}

TEST(Requests, RejectInvalidArguments) {
  const Ranks ranks(2);
  tutti_request request = nullptr;
  int value = 0, found = 0;
  EXPECT_EQ(tutti_isend(&value, 1, tutti_int32, 2, 0, ranks[0], &request), tutti_invalid_argument);
  EXPECT_EQ(last_error(), "tutti_isend: peer 2 is out of range; ranks are 0..1");
  EXPECT_EQ(tutti_isend(&value, 1, tutti_int32, TUTTI_ANY_RANK, 0, ranks[0], &request), tutti_invalid_argument);
  EXPECT_EQ(tutti_irecv(&value, 1, tutti_int32, -2, 0, ranks[0], &request), tutti_invalid_argument);
  EXPECT_EQ(last_error(), "tutti_irecv: peer -2 is out of range; ranks are 0..1, or TUTTI_ANY_RANK");
  EXPECT_EQ(tutti_irecv(nullptr, 1, tutti_int32, 0, 0, ranks[0], &request), tutti_invalid_argument);
  EXPECT_EQ(tutti_isend(&value, 1, static_cast<tutti_type>(31), 0, 0, ranks[0], &request), tutti_invalid_argument);
  EXPECT_EQ(tutti_isend(&value, std::size_t{1} << 50, tutti_int32, 0, 0, ranks[0], &request), tutti_invalid_argument);
  EXPECT_EQ(tutti_isend(&value, 1, tutti_int32, 0, 0, ranks[0], nullptr), tutti_invalid_argument);
  EXPECT_EQ(tutti_isend(&value, 1, tutti_int32, 0, 0, nullptr, &request), tutti_invalid_argument);
  EXPECT_EQ(request, nullptr);
  tutti_message unset = {};
  EXPECT_EQ(tutti_iprobe(0, 0, ranks[0], &found, &unset), tutti_invalid_argument);
  EXPECT_EQ(tutti_iprobe(0, 0, ranks[0], nullptr, nullptr), tutti_invalid_argument);
  EXPECT_EQ(tutti_request_wait(nullptr, 0, nullptr), tutti_invalid_argument);
  const auto function = [](void*, tutti_status) { ADD_FAILURE(); };
  EXPECT_EQ(tutti_request_on_completion(nullptr, function, nullptr), tutti_invalid_argument);
  TUTTI_EXPECT_OK(tutti_request_destroy(nullptr));
}

// A child of a process with several threads; sanitizers do not support it.
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
TEST(Requests, AreInvalidInChild_WhichCanUseOwnOnes) {
  const Ranks ranks(2);
  std::vector<std::int32_t> received(1);
  const tutti_request receive = irecv(received, 0, 7, ranks[1]);
  const std::vector<int> statuses = run_processes(1, [&](int) {
    ::alarm(20);  // Turns a hang of the child into a failure.
    if (tutti_request_wait(receive, 0, nullptr) != tutti_invalid_argument) return 1;
    std::vector<tutti_comm> own(2);
    if (tutti_comm_create_all(2, nullptr, own.data()) != tutti_ok) return 2;
    exchange(own[0], own[1], 7, 1);
    return ::testing::Test::HasFailure() ? 3 : 0;
  });
  EXPECT_EQ(statuses, std::vector<int>{0});
  EXPECT_EQ(outcome(isend({4}, 1, 7, ranks[0])), "ok");
  EXPECT_EQ(outcome(receive), "ok");
  EXPECT_EQ(received[0], 4);
}
#endif

// Rank 1 is killed after it has received a message. Requests of rank 0 end, even those for rank 2.
TEST(Requests, NameDeadRank_WhenProcessIsKilled) {
  const Pipe pipe;
  const std::vector<int> statuses = run_processes(3, [&](int rank) {
    ::alarm(60);
    const tutti_comm comm = create(rank, 3, pipe);
    if (comm == nullptr) return 1;
    std::vector<std::int32_t> value = {rank};
    if (rank == 1) {
      if (outcome(irecv(value, 0, 1, comm)) != "ok") return 2;
      ::raise(SIGKILL);
    }
    std::vector<std::int32_t> received[3] = {{0}, {0}, {0}};
    const tutti_request requests[] = {irecv(received[0], 1, 2, comm), irecv(received[1], TUTTI_ANY_RANK, 2, comm),
                                      irecv(received[2], 2 - rank, 2, comm)};
    if (rank == 0 && outcome(isend(value, 1, 1, comm)) != "ok") return 3;
    for (const tutti_request request : requests) {
      if (tutti_request_wait(request, kHangMs, nullptr) != tutti_remote_error) return 4;
      if (last_error().find("rank 1 died") == std::string::npos) return 5;
      tutti_request_destroy(request);
    }
    tutti_status error = tutti_ok;
    if (tutti_comm_async_error(comm, &error) != tutti_ok || error != tutti_remote_error) return 6;
    tutti_comm_destroy(comm);
    return 0;
  });
  EXPECT_EQ(statuses, (std::vector<int>{0, SIGKILL, 0}));
}

}  // namespace
}  // namespace tutti::test
