// Ranks that make different calls, abort, or do not call. All ranks must report an error in bounded time.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>

#include "src/base/clock.h"
#include "src/communicator/group.h"
#include "tests/communicator/calls.h"
#include "tests/communicator/ranks.h"

namespace tutti::test {
namespace {

TEST(CallFailure, ReportsBothCallsOnEveryRank_WhenCountsDiffer) {
  for (const std::size_t count : {8, 1024, 100'000}) {
    Communicators ranks = make_ranks(3);
    const auto statuses = on_all(ranks, [&](Communicator& communicator) {
      std::vector<float> buffer(communicator.rank() == 2 ? count + 1 : count);
      return communicator.run(all_reduce(buffer));
    });
    for (const Status& status : statuses) {
      EXPECT_EQ(status.code(), Code::invalid_usage);
      EXPECT_NE(status.message().find("all_reduce(" + std::to_string(count) + " float32, sum)"), std::string::npos)
          << status.message();
      EXPECT_NE(status.message().find("all_reduce(" + std::to_string(count + 1) + " float32, sum)"), std::string::npos)
          << status.message();
    }
  }
}

// Expects a mismatch error on every rank. A rank whose call waited for no other rank reports it afterwards.
void expect_both(Communicators& ranks, const std::vector<Status>& statuses, const std::vector<std::string>& calls) {
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const std::string reported = statuses[rank].ok() ? ranks[rank]->failure().message() : statuses[rank].message();
    for (const std::string& call : calls) EXPECT_NE(reported.find(call), std::string::npos) << rank << ": " << reported;
  }
}

// Counts of a collective or of a message differ. The error must contain the name of the communicator, whichever rank
// detects it.
TEST(CallFailure, NamesCommunicator_WhenCallsDiffer) {
  CommunicatorOptions options;
  options.name = "gradients";
  for (const Rank count : {2, 3, 5}) {
    Communicators ranks = std::move(Communicator::create_all(count, options)).value();
    on_all(ranks, [&](Communicator& communicator) {
      std::vector<float> buffer(communicator.rank() == 1 ? 10 : 20);
      return communicator.run(all_reduce(buffer));
    });
    expect_both(ranks, std::vector<Status>(count),
                {"ranks disagree on collective 1 of gradients: rank ", "(10 float32, sum)", "(20 float32, sum)"});
  }
  Communicators ranks = std::move(Communicator::create_all(2, options)).value();
  on_all(ranks, [](Communicator& communicator) {
    std::vector<int> buffer(communicator.rank() == 0 ? 10 : 20);
    return communicator.run(
        message(communicator.rank() == 0 ? Kind::send : Kind::recv, 1 - communicator.rank(), buffer));
  });
  expect_both(ranks, std::vector<Status>(2), {"send(10 int32, to rank 1) on gradients"});
}

// Two ranks make different collectives with root 0, in all combinations in which one rank waits for the other. Calls
// that wait must fail, and both ranks must report both calls.
TEST(CallFailure, ReportsBothCalls_ForEveryPairOfCollectives) {
  const auto waits = [](Collective collective, Rank rank) {
    switch (collective) {
      case Collective::broadcast:
      case Collective::scatter: return rank != 0;
      case Collective::reduce:
      case Collective::gather: return rank == 0;
      default: return true;
    }
  };
  for (std::uint32_t pair = 0; pair < kCollectives * kCollectives; ++pair) {
    const Collective made[] = {static_cast<Collective>(pair / kCollectives),
                               static_cast<Collective>(pair % kCollectives)};
    if (made[0] == made[1] || (!waits(made[0], 0) && !waits(made[1], 1))) continue;
    Communicators ranks = make_ranks(2);
    const auto statuses = on_all(ranks, [&](Communicator& communicator) {
      std::vector<float> in(128), out(128);
      Call call;
      call.collective = made[communicator.rank()];
      call.count = 64;
      call.input = reinterpret_cast<const std::byte*>(in.data());
      call.output = reinterpret_cast<std::byte*>(out.data());
      return communicator.run(call);
    });
    SCOPED_TRACE(std::string(name(made[0])) + " against " + name(made[1]));
    for (const Rank rank : {0U, 1U}) {
      EXPECT_EQ(statuses[rank].code(),
                waits(made[rank], rank) || !statuses[rank].ok() ? Code::invalid_usage : Code::ok);
    }
    expect_both(
        ranks, statuses,
        {std::string("rank 0 called ") + name(made[0]) + "(64", std::string("rank 1 called ") + name(made[1]) + "(64"});
  }
}

TEST(CallFailure, ReportsBothCalls_WhenMessageSizesDiffer) {
  Communicators ranks = make_ranks(2);
  const auto statuses = on_all(ranks, [](Communicator& communicator) {
    std::vector<int> buffer(communicator.rank() == 0 ? 10 : 20);
    return communicator.run(
        message(communicator.rank() == 0 ? Kind::send : Kind::recv, 1 - communicator.rank(), buffer));
  });
  EXPECT_EQ(statuses[1].code(), Code::invalid_usage);
  expect_both(ranks, statuses,
              {"rank 1 called recv(20 int32, from rank 0)", "rank 0 called send(10 int32, to rank 1)"});
}

Status exchange(Communicator& communicator, std::uint64_t sent, std::uint64_t received) {
  std::vector<int> buffer(100);
  const Unequal unequal = {{sent, sent}, {0, sent}, {received, received}, {0, received}};
  Call call = message(Kind::all_to_all_v, 0, buffer);
  std::vector<int> output(100);
  call.output = reinterpret_cast<std::byte*>(output.data());
  call.unequal = &unequal;
  return communicator.run(call);
}

TEST(CallFailure, ReportsBothCounts_OfUnequalBlocks) {
  Communicators ranks = make_ranks(2);
  const auto statuses = on_all(ranks, [](Communicator& communicator) {
    return communicator.rank() == 0 ? exchange(communicator, 5, 5) : exchange(communicator, 7, 7);
  });
  for (const Status& status : statuses) EXPECT_EQ(status.code(), Code::invalid_usage);
  expect_both(ranks, statuses, {"in all_to_all_v rank ", "receives ", "5 int32", "7 int32"});
}

TEST(CallFailure, ReportsBothCalls_WhenOneHasUnequalBlocks) {
  Communicators ranks = make_ranks(2);
  const auto statuses = on_all(ranks, [](Communicator& communicator) {
    std::vector<float> buffer(64);
    return communicator.rank() == 0 ? exchange(communicator, 5, 5) : communicator.run(all_reduce(buffer));
  });
  for (const Status& status : statuses) EXPECT_EQ(status.code(), Code::invalid_usage);
  expect_both(ranks, statuses, {"rank 0 called all_to_all_v(int32)", "rank 1 called all_reduce(64 float32, sum)"});
}

TEST(CallFailure, NamesRankThatTimedOut) {
  CommunicatorOptions options;
  auto made = Communicator::create_all(2, [&] {
    options.timeout_ms = 50;
    return options;
  }());
  ASSERT_TRUE(made.ok());
  std::vector<float> buffer(16);
  const Status status = made.value()[0]->run(all_reduce(buffer));
  EXPECT_EQ(status.code(), Code::timeout);
  EXPECT_NE(status.message().find("rank 1"), std::string::npos) << status.message();
  EXPECT_EQ(made.value()[1]->failure().code(), Code::timeout);  // All ranks fail.
}

TEST(CallFailure, NamesAllRanksThatHaveNotCalled) {
  CommunicatorOptions options;
  options.timeout_ms = 50;
  auto made = Communicator::create_all(4, options);
  ASSERT_TRUE(made.ok());
  std::vector<float> buffer(16);
  const Status status = made.value()[0]->run(all_reduce(buffer));
  EXPECT_TRUE(status.message().ends_with("; ranks 1, 2, 3 have not called it")) << status.message();
}

TEST(CallFailure, NamesTheOneRankThatHasNotCalled) {
  CommunicatorOptions options;
  options.timeout_ms = 1000;
  auto made = Communicator::create_all(3, options);
  ASSERT_TRUE(made.ok());
  std::barrier together(2);
  const auto statuses = on_all(made.value(), [&](Communicator& communicator) -> Status {
    if (communicator.rank() == 1) return {};
    std::vector<float> buffer(16);
    together.arrive_and_wait();
    return communicator.run(all_reduce(buffer));
  });
  for (const Rank rank : {0U, 2U}) {
    EXPECT_EQ(statuses[rank].code(), Code::timeout);
    const std::string& text = statuses[rank].message();  // A rank may wait for the other caller instead of rank 1.
    EXPECT_TRUE(text.find("for rank 1, which has not called it") != std::string::npos ||
                text.find("; rank 1 has not called it") != std::string::npos)
        << statuses[rank].message();
  }
}

void expect_leave(const std::vector<Status>& statuses, const std::string& words) {
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), Code::invalid_usage);
    EXPECT_EQ(status.message(), words);
  }
}

TEST(CallFailure, ReportsRankThatLeaves_WithoutCallingCollective) {
  Communicators ranks = make_ranks(3);
  const auto statuses = on_all(ranks, [](Communicator& communicator) -> Status {
    std::vector<float> buffer(16);
    TUTTI_CHECK_OK(communicator.run(all_reduce(buffer)));
    return communicator.rank() == 1 ? communicator.finalize() : communicator.run(all_reduce(buffer));
  });
  for (const Status& status : statuses) EXPECT_EQ(status.code(), Code::invalid_usage) << status.message();
  const std::string first = "rank 1 finalizes or destroys the communicator, while rank ";
  EXPECT_TRUE(statuses[0].message().starts_with(first)) << statuses[0].message();
  EXPECT_TRUE(statuses[0].message().ends_with(" is in all_reduce(16 float32, sum) #2")) << statuses[0].message();
  expect_leave(statuses, statuses[0].message());
}

// The root of a small broadcast waits for no rank once its lanes exist. Only the other rank can detect the mismatch,
// when it leaves.
TEST(CallFailure, ReportsRankThatLeaves_WhileOthersContinue) {
  Communicators ranks = make_ranks(2);
  std::vector<float> buffers[2] = {std::vector<float>(16), std::vector<float>(16)};
  const auto broadcast = [&](Communicator& communicator) {
    Call call = all_reduce(buffers[communicator.rank()]);
    call.collective = Collective::broadcast;
    return communicator.run(call);
  };
  for (const Status& status : on_all(ranks, broadcast)) ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_TRUE(broadcast(*ranks[0]).ok());
  const std::string words =
      "rank 1 finalizes or destroys the communicator, while rank 0 is in broadcast(16 float32, root 0) #2";
  EXPECT_EQ(ranks[1]->finalize().message(), words);
  EXPECT_EQ(ranks[0]->failure().message(), words);
}

TEST(CallFailure, ReportsRankThatLeaves_WithoutMessage) {
  Communicators ranks = make_ranks(2);
  const auto statuses = on_all(ranks, [](Communicator& communicator) {
    std::vector<int> buffer(20);
    return communicator.rank() == 1 ? communicator.finalize() : communicator.run(message(Kind::recv, 1, buffer));
  });
  expect_leave(statuses,
               "rank 1 finalizes or destroys the communicator, while rank 0 is in recv(20 int32, from rank 1)");
}

// Each rank leaves as soon as its own calls have completed. The data that it sent must arrive, and no rank may report
// an error.
TEST(CallFailure, DoesNotOccur_WhenFastRanksLeaveFirst) {
  for (int i = 0; i < 50; ++i) {
    Communicators ranks = make_ranks(3);
    const auto statuses = on_all(ranks, [&](Communicator& communicator) -> Status {
      std::vector<float> buffer(50'000);
      Call broadcast = all_reduce(buffer);
      broadcast.collective = Collective::broadcast;
      broadcast.root = static_cast<Rank>(i) % 3;
      TUTTI_CHECK_OK(communicator.run(broadcast));
      std::vector<int> sent(30'000);
      if (communicator.rank() == 0) TUTTI_CHECK_OK(communicator.run(message(Kind::send, 1, sent)));
      if (communicator.rank() == 1) TUTTI_CHECK_OK(communicator.run(message(Kind::recv, 0, sent)));
      return communicator.finalize();
    });
    for (const Status& status : statuses) ASSERT_TRUE(status.ok()) << status.message();
  }
}

TEST(CallFailure, OmitsDetectingRank_WhenItIsTheCause) {
  Communicators ranks = make_ranks(2);
  ranks[1]->abort();
  EXPECT_EQ(ranks[0]->failure().message(), "rank 1 aborted the communicator");
}

TEST(CallFailure, NamesMessageThatTimedOut) {
  CommunicatorOptions options;
  options.timeout_ms = 200;
  auto made = Communicator::create_all(2, options);
  ASSERT_TRUE(made.ok());
  std::vector<int> buffer(20);
  const Status status = made.value()[0]->run(message(Kind::recv, 1, buffer));
  EXPECT_EQ(status.code(), Code::timeout);
  EXPECT_NE(status.message().find("recv(20 int32, from rank 1): rank 0 waited 200 ms"), std::string::npos)
      << status.message();
  EXPECT_NE(made.value()[1]->failure().message().find("recv(20 int32, from rank 1)"), std::string::npos);
}

TEST(CallFailure, SuggestsGroup_WhenRanksOnlySendToEachOther) {
  CommunicatorOptions options;
  options.timeout_ms = 200;
  auto made = Communicator::create_all(2, options);
  ASSERT_TRUE(made.ok());
  std::vector<int> buffer(4 << 20);  // Exceeds the slots of a lane.
  const Status status = made.value()[0]->run(message(Kind::send, 1, buffer));
  EXPECT_EQ(status.code(), Code::timeout);
  EXPECT_NE(status.message().find("if sends lead from rank 1 back to rank 0, none can go on"), std::string::npos)
      << status.message();
}

// The timeout limits the time without progress. Each wait here is a tenth of the timeout, and their sum exceeds it.
TEST(CallFailure, DoesNotOccur_WhileMessageProgresses) {
  CommunicatorOptions options;
  options.timeout_ms = 2000;
  auto made = Communicator::create_all(2, options);
  ASSERT_TRUE(made.ok());
  std::vector<int> sent(4 << 20), received(sent.size());
  const auto send = made.value()[0]->start(message(Kind::send, 1, sent));
  const auto recv = made.value()[1]->start(message(Kind::recv, 0, received));
  ASSERT_TRUE(send.ok() && recv.ok());
  for (std::int64_t waited_ms = 0; waited_ms < 2 * options.timeout_ms; waited_ms += options.timeout_ms / 10) {
    const Deadline next = Deadline::after_ms(options.timeout_ms / 10);
    while (!next.passed()) ASSERT_TRUE(recv.value()->wait().ok()) << made.value()[0]->failure().message();
    for (const auto* operation : {&send, &recv}) {
      const auto done = operation->value()->advance();
      ASSERT_TRUE(done.ok() && !done.value());
    }
  }
}

TEST(CallFailure, EndsWaits_WhenAnyThreadAborts) {
  Communicators ranks = make_ranks(2);
  std::atomic<bool> waiting = false;
  std::thread other([&] {
    while (!waiting) std::this_thread::yield();
    ranks[1]->abort();
  });
  std::vector<float> buffer(1000);
  waiting = true;
  EXPECT_EQ(ranks[0]->run(all_reduce(buffer)).code(), Code::aborted);
  other.join();
  EXPECT_EQ(ranks[1]->run(all_reduce(buffer)).code(), Code::aborted);
}

TEST(GroupedCalls, ExchangeLargeMessagesInRing) {
  Communicators ranks = make_ranks(4);
  const auto statuses = on_all(ranks, [](Communicator& communicator) -> Status {
    const Rank next = (communicator.rank() + 1) % 4;
    const Rank previous = (communicator.rank() + 3) % 4;
    std::vector<GroupedCall> calls;
    std::vector<std::vector<int>> in(3), out(3);
    for (int i = 0; i < 3; ++i) {  // Several messages to the same peer, one of them empty.
      const std::size_t count = i == 1 ? 0 : 900'000;
      in[i].assign(count, static_cast<int>(communicator.rank() * 10) + i);
      out[i].assign(count, -1);
      Call call;
      call.kind = Kind::send;
      call.type = DataType::int32;
      call.count = count;
      call.root = next;
      call.input = reinterpret_cast<const std::byte*>(in[i].data());
      calls.push_back({&communicator, call, communicator.options()});
      call.kind = Kind::recv;
      call.root = previous;
      call.output = reinterpret_cast<std::byte*>(out[i].data());
      calls.push_back({&communicator, call, communicator.options()});
    }
    TUTTI_CHECK_OK(run_group(calls));
    for (int i = 0; i < 3; ++i) {
      for (const int value : out[i]) {
        if (value != static_cast<int>(previous * 10) + i)
          return internal_error("message " + std::to_string(i) + " is wrong");
      }
    }
    return {};
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
}

TEST(GroupedCalls, UseTimeoutOfEachHandle) {
  Communicators ranks = make_ranks(2);
  std::vector<int> buffer(20);
  CommunicatorOptions hasty;
  hasty.timeout_ms = 50;
  const Call call = message(Kind::recv, 1, buffer);
  const Status status = run_group({{ranks[0].get(), call, hasty}, {ranks[0].get(), call, ranks[0]->options()}});
  EXPECT_NE(status.message().find("waited 50 ms"), std::string::npos) << status.message();
}

TEST(GroupedCalls, RunAllRanksInOneThread) {
  Communicators ranks = make_ranks(3);
  std::vector<std::vector<float>> buffers(3, std::vector<float>(20'000, 1));
  std::vector<GroupedCall> calls;
  for (std::size_t rank = 0; rank < 3; ++rank)
    calls.push_back({ranks[rank].get(), all_reduce(buffers[rank]), ranks[rank]->options()});
  const Status status = run_group(calls);
  ASSERT_TRUE(status.ok()) << status.message();
  for (const auto& buffer : buffers) EXPECT_EQ(buffer, std::vector<float>(20'000, 3));
}

TEST(GroupedCalls, Complete_WhenAnotherCommunicatorFails) {
  Communicators well = make_ranks(2);
  Communicators aborted = make_ranks(2);
  aborted[0]->abort();
  std::vector<std::vector<float>> buffers(3, std::vector<float>(1000, 1));
  const Status status = run_group({{aborted[0].get(), all_reduce(buffers[2]), {}},
                                   {well[0].get(), all_reduce(buffers[0]), {}},
                                   {well[1].get(), all_reduce(buffers[1]), {}}});
  EXPECT_EQ(status.code(), Code::aborted) << status.message();
  EXPECT_EQ(buffers[0], std::vector<float>(1000, 2));
  EXPECT_EQ(buffers[1], std::vector<float>(1000, 2));
}

}  // namespace
}  // namespace tutti::test
