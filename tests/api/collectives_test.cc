#include <algorithm>
#include <atomic>
#include <numeric>

#include "tests/api/ranks.h"

namespace tutti::test {
namespace {

using Vector = std::vector<std::int32_t>;
constexpr std::int32_t kPoison = -7;

// Every collective, for some numbers of ranks and counts. With a count of 0, no memory is written.
class Collectives : public ::testing::TestWithParam<std::tuple<int, std::size_t>> {
 protected:
  int ranks() const { return std::get<0>(GetParam()); }
  std::size_t count() const { return std::get<1>(GetParam()); }
  std::size_t all() const { return count() * static_cast<std::size_t>(ranks()); }
  std::size_t at(int rank) const { return count() * static_cast<std::size_t>(rank); }
  Vector poisoned(std::size_t size) const {
    return Vector(size + 1, kPoison);
  }  // One more element, which must stay unchanged.
  std::string where(int rank) const {
    return "rank " + std::to_string(rank) + ", seed " + std::to_string(value_.seed());
  }

  std::int32_t sum(std::size_t i) const {
    std::int32_t total = 0;
    for (int rank = 0; rank < ranks(); ++rank) total += value_(rank, i);
    return total;
  }
  template <typename Expected>
  void expect(const Vector& recv, std::size_t size, int rank, Expected&& expected) const {
    for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(recv[i], expected(i)) << where(rank) << ", element " << i;
    ASSERT_EQ(recv.back(), kPoison) << where(rank);
  }

  Values value_;
};

TEST_P(Collectives, AllReduce) {
  Ranks(ranks()).run([&](int rank, tutti_comm comm) {
    Vector recv = poisoned(count());
    TUTTI_EXPECT_OK(
        tutti_all_reduce(value_.of(rank, count()).data(), recv.data(), count(), tutti_int32, tutti_sum, comm, nullptr));
    expect(recv, count(), rank, [&](std::size_t i) { return sum(i); });
    Vector in_place = value_.of(rank, count());
    TUTTI_EXPECT_OK(tutti_all_reduce(in_place.data(), in_place.data(), count(), tutti_int32, tutti_sum, comm, nullptr));
    in_place.push_back(kPoison);
    expect(in_place, count(), rank, [&](std::size_t i) { return sum(i); });
  });
}

TEST_P(Collectives, AllGather) {
  Ranks(ranks()).run([&](int rank, tutti_comm comm) {
    const auto expected = [&](std::size_t i) { return value_(static_cast<int>(i / count()), i % count()); };
    const Vector send = value_.of(rank, count());
    Vector recv = poisoned(all());
    TUTTI_EXPECT_OK(tutti_all_gather(send.data(), recv.data(), count(), tutti_int32, comm, nullptr));
    expect(recv, all(), rank, expected);
    recv = poisoned(all());
    std::copy(send.begin(), send.end(), recv.data() + at(rank));
    TUTTI_EXPECT_OK(tutti_all_gather(recv.data() + at(rank), recv.data(), count(), tutti_int32, comm, nullptr));
    expect(recv, all(), rank, expected);
  });
}

TEST_P(Collectives, ReduceScatter) {
  Ranks(ranks()).run([&](int rank, tutti_comm comm) {
    Vector send = value_.of(rank, all());
    Vector recv = poisoned(count());
    TUTTI_EXPECT_OK(tutti_reduce_scatter(send.data(), recv.data(), count(), tutti_int32, tutti_sum, comm, nullptr));
    expect(recv, count(), rank, [&](std::size_t i) { return sum(at(rank) + i); });
    TUTTI_EXPECT_OK(
        tutti_reduce_scatter(send.data(), send.data() + at(rank), count(), tutti_int32, tutti_sum, comm, nullptr));
    const Vector block(send.data() + at(rank), send.data() + at(rank) + count());
    for (std::size_t i = 0; i < count(); ++i)
      ASSERT_EQ(block[i], sum(at(rank) + i)) << where(rank) << ", element " << i;
  });
}

TEST_P(Collectives, AllToAll) {
  Ranks(ranks()).run([&](int rank, tutti_comm comm) {
    Vector recv = poisoned(all());
    TUTTI_EXPECT_OK(tutti_all_to_all(value_.of(rank, all()).data(), recv.data(), count(), tutti_int32, comm, nullptr));
    const auto expected = [&](std::size_t i) { return value_(static_cast<int>(i / count()), at(rank) + i % count()); };
    expect(recv, all(), rank, expected);
    recv = value_.of(rank, all());
    recv.push_back(kPoison);
    TUTTI_EXPECT_OK(tutti_all_to_all(recv.data(), recv.data(), count(), tutti_int32, comm, nullptr));
    expect(recv, all(), rank, expected);
  });
}

TEST_P(Collectives, RootedCollectives_WithEveryRoot) {
  Ranks(ranks()).run([&](int rank, tutti_comm comm) {
    const Vector send = value_.of(rank, all());
    for (int root = 0; root < ranks(); ++root) {
      Vector recv = poisoned(count());
      TUTTI_EXPECT_OK(tutti_broadcast(send.data(), recv.data(), count(), tutti_int32, root, comm, nullptr));
      expect(recv, count(), rank, [&](std::size_t i) { return value_(root, i); });
      TUTTI_EXPECT_OK(
          tutti_scatter(rank == root ? send.data() : nullptr, recv.data(), count(), tutti_int32, root, comm, nullptr));
      expect(recv, count(), rank, [&](std::size_t i) { return value_(root, at(rank) + i); });
      Vector gathered = poisoned(all());
      TUTTI_EXPECT_OK(tutti_gather(send.data(), rank == root ? gathered.data() : nullptr, count(), tutti_int32, root,
                                   comm, nullptr));
      expect(gathered, rank == root ? all() : 0, rank,
             [&](std::size_t i) { return value_(static_cast<int>(i / count()), i % count()); });
      Vector reduced = poisoned(count());
      TUTTI_EXPECT_OK(tutti_reduce(send.data(), rank == root ? reduced.data() : nullptr, count(), tutti_int32,
                                   tutti_sum, root, comm, nullptr));
      expect(reduced, rank == root ? count() : 0, rank, [&](std::size_t i) { return sum(i); });
    }
  });
}

TEST_P(Collectives, AllToAllV) {  // Rank i sends (i + j) % 3 * count elements to rank j.
  const auto length = [&](int from, int to) { return static_cast<std::size_t>((from + to) % 3) * count(); };
  Ranks(ranks()).run([&](int rank, tutti_comm comm) {
    std::vector<std::size_t> send_counts, send_offsets, recv_counts, recv_offsets;
    std::size_t sent = 0, received = 0;
    for (int peer = 0; peer < ranks(); ++peer) {
      send_counts.push_back(length(rank, peer));
      recv_counts.push_back(length(peer, rank));
      send_offsets.push_back(std::exchange(sent, sent + send_counts.back()));
      recv_offsets.push_back(std::exchange(received, received + recv_counts.back()));
    }
    Vector recv = poisoned(received);
    TUTTI_EXPECT_OK(tutti_all_to_all_v(value_.of(rank, sent).data(), send_counts.data(), send_offsets.data(),
                                       recv.data(), recv_counts.data(), recv_offsets.data(), tutti_int32, comm,
                                       nullptr));
    for (int peer = 0; peer < ranks(); ++peer) {
      std::size_t first = 0;  // Offset of the block in the peer's send buffer.
      for (int before = 0; before < rank; ++before) first += length(peer, before);
      for (std::size_t i = 0; i < length(peer, rank); ++i) {
        ASSERT_EQ(recv[recv_offsets[static_cast<std::size_t>(peer)] + i], value_(peer, first + i)) << where(rank);
      }
    }
    ASSERT_EQ(recv.back(), kPoison);
  });
}

TEST_P(Collectives, SendAndRecv_InGroup) {
  Ranks(ranks()).run([&](int rank, tutti_comm comm) {
    Vector recv = poisoned(all());
    const Vector send = value_.of(rank, all());
    tutti_group_start();
    for (int peer = 0; peer < ranks(); ++peer) {
      TUTTI_EXPECT_OK(tutti_send(send.data() + at(peer), count(), tutti_int32, peer, comm, nullptr));
      TUTTI_EXPECT_OK(tutti_recv(recv.data() + at(peer), count(), tutti_int32, peer, comm, nullptr));
    }
    TUTTI_EXPECT_OK(tutti_group_end());
    expect(recv, all(), rank,
           [&](std::size_t i) { return value_(static_cast<int>(i / count()), at(rank) + i % count()); });
  });
}

TEST_P(Collectives, AllRanks_InOneThread) {
  const Ranks group(ranks());
  std::vector<Vector> recv(static_cast<std::size_t>(ranks()), poisoned(count())), send;
  for (int rank = 0; rank < ranks(); ++rank) send.push_back(value_.of(rank, count()));
  tutti_group_start();
  for (int rank = 0; rank < ranks(); ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    TUTTI_EXPECT_OK(
        tutti_all_reduce(send[r].data(), recv[r].data(), count(), tutti_int32, tutti_sum, group[rank], nullptr));
  }
  TUTTI_EXPECT_OK(tutti_group_end());
  for (int rank = 0; rank < ranks(); ++rank) {
    expect(recv[static_cast<std::size_t>(rank)], count(), rank, [&](std::size_t i) { return sum(i); });
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Collectives,
                         ::testing::Combine(::testing::Values(1, 2, 3, 5), ::testing::Values(0, 1, 3, 1000, 100'000)));

TEST(Reduction, PreMulSumScalesInputOfEachRank) {
  Ranks(3).run([](int rank, tutti_comm comm) {
    const float scalar = static_cast<float>(rank) + 0.5F;
    const std::vector<float> send = {1, 2, 4};
    std::vector<float> recv(3);
    tutti_reduction reduction = 0;
    TUTTI_EXPECT_OK(tutti_reduction_create_pre_mul_sum(&scalar, tutti_float32, comm, &reduction));
    TUTTI_EXPECT_OK(tutti_all_reduce(send.data(), recv.data(), 3, tutti_float32, reduction, comm, nullptr));
    EXPECT_EQ(recv, (std::vector<float>{4.5, 9, 18}));
    TUTTI_EXPECT_OK(tutti_reduction_destroy(reduction, comm));
  });
}

TEST(Reduction, AverageRoundsIntegersTowardsZero) {
  Ranks(3).run([](int rank, tutti_comm comm) {
    const Vector send = {rank + 1, -rank - 2, 7};  // The sums are 6, -9 and 21.
    Vector recv(3);
    TUTTI_EXPECT_OK(tutti_all_reduce(send.data(), recv.data(), 3, tutti_int32, tutti_avg, comm, nullptr));
    EXPECT_EQ(recv, (Vector{2, -3, 7}));
    const Vector one = {rank == 0 ? -1 : 0};
    TUTTI_EXPECT_OK(tutti_all_reduce(one.data(), recv.data(), 1, tutti_int32, tutti_avg, comm, nullptr));
    EXPECT_EQ(recv[0], 0);
  });
}

TEST(Stream, OverlapsAndKeepsOrder) {
  Ranks(2).run([](int rank, tutti_comm comm) {
    tutti_stream stream = nullptr;
    TUTTI_EXPECT_OK(tutti_stream_create(&stream));
    std::vector<std::int64_t> value(1000, rank + 1);
    for (int i = 0; i < 30; ++i) {  // 3 = 1 + 2, then doubled 29 times.
      TUTTI_EXPECT_OK(tutti_all_reduce(value.data(), value.data(), value.size(), tutti_int64, tutti_sum, comm, stream));
    }
    TUTTI_EXPECT_OK(tutti_all_reduce(value.data(), value.data(), value.size(), tutti_int64, tutti_max, comm, nullptr));
    TUTTI_EXPECT_OK(tutti_stream_synchronize(stream));
    EXPECT_EQ(value, std::vector<std::int64_t>(1000, 3LL << 29));
    TUTTI_EXPECT_OK(tutti_stream_destroy(stream));
  });
}

// Rank 0 cancels its group while rank 1 waits in a call of the group. Rank 1 receives the reason at once. Rank 0's own
// error is not a remote error.
void expect_called_off(const std::function<void(tutti_comm, float*)>& group, const char* reason) {
  const Ranks ranks(2);
  ranks.run([&](int rank, tutti_comm comm) {
    float value[2] = {};
    if (rank == 0) {
      group(comm, value);
      tutti_status error = tutti_ok;
      TUTTI_EXPECT_OK(tutti_comm_async_error(comm, &error));
      EXPECT_NE(error, tutti_remote_error);
      const std::string own = tutti_last_error(comm);
      EXPECT_EQ(own.find("cancels its group"), std::string::npos) << own;
      EXPECT_NE(own.find(reason), std::string::npos) << own;
      return;
    }
    EXPECT_EQ(tutti_all_reduce(value, value, 1, tutti_float32, tutti_sum, comm, nullptr), tutti_remote_error);
    EXPECT_NE(last_error().find("rank 0 cancels its group"), std::string::npos) << last_error();
    EXPECT_NE(last_error().find(reason), std::string::npos) << last_error();
  });
}

TEST(Group, FailsOnPeers_WhenCallIsInvalid) {
  const auto refused = [](tutti_comm comm, float* value) {
    tutti_group_start();
    TUTTI_EXPECT_OK(tutti_all_reduce(value, value, 1, tutti_float32, tutti_sum, comm, nullptr));
    EXPECT_EQ(tutti_send(value, 1, tutti_float32, 9, comm, nullptr), tutti_invalid_argument);
    EXPECT_EQ(tutti_group_end(), tutti_invalid_argument);
  };
  expect_called_off(refused, "peer 9 is out of range");
}

// One thread makes the calls of three ranks. All of them must report rank 1, whose call is invalid.
TEST(Group, NamesRankOfInvalidCall_WhenOneThreadHasAllRanks) {
  tutti_comm comms[3] = {};
  TUTTI_EXPECT_OK(tutti_comm_create_all(3, nullptr, comms));
  float value[3] = {};
  tutti_group_start();
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(tutti_all_reduce(rank == 1 ? nullptr : &value[rank], &value[rank], 1, tutti_float32, tutti_sum,
                               comms[rank], nullptr),
              rank == 1 ? tutti_invalid_argument : tutti_ok);
  }
  EXPECT_EQ(tutti_group_end(), tutti_invalid_argument);
  EXPECT_EQ(last_error().find("tutti_group_end: tutti_all_reduce: send is null"), 0U) << last_error();
  for (const int rank : {0, 1, 2}) {
    EXPECT_EQ(tutti_all_reduce(&value[rank], &value[rank], 1, tutti_float32, tutti_sum, comms[rank], nullptr),
              rank == 1 ? tutti_invalid_argument : tutti_remote_error);
    const std::string cause = rank == 1 ? "a group of this rank failed: " : "rank 1 cancels its group: ";
    EXPECT_EQ(last_error().find("tutti_all_reduce: " + cause + "tutti_all_reduce: send is null"), 0U) << last_error();
  }
  for (tutti_comm comm : comms) TUTTI_EXPECT_OK(tutti_comm_leave(comm));
}

TEST(Group, FailsOnPeers_WhenStreamIsDestroyed) {
  const auto streamless = [](tutti_comm comm, float* value) {
    tutti_stream stream = nullptr;
    TUTTI_EXPECT_OK(tutti_stream_create(&stream));
    tutti_group_start();
    TUTTI_EXPECT_OK(tutti_all_reduce(value, value, 1, tutti_float32, tutti_sum, comm, stream));
    TUTTI_EXPECT_OK(tutti_stream_destroy(stream));
    EXPECT_EQ(tutti_group_end(), tutti_invalid_argument);
  };
  expect_called_off(streamless, "stream");
}

TEST(Group, FailsOnPeers_WhenCallIsUnsupported) {
  const auto impossible = [](tutti_comm comm, float* value) {
    tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
    tutti_reduction reduction = 0;
    TUTTI_EXPECT_OK(tutti_reduction_create_pre_mul_sum(value, tutti_float32, comm, &reduction));
    tutti_tuning_options tuning = TUTTI_TUNING_OPTIONS_DEFAULT;
    tuning.algorithm = "two_shot_mapped";
    options.tuning = &tuning;
    tutti_comm mapped = nullptr;
    TUTTI_EXPECT_OK(tutti_comm_with_options(comm, &options, &mapped));
    tutti_group_start();
    TUTTI_EXPECT_OK(tutti_all_reduce(value, value, 1, tutti_float32, reduction, mapped, nullptr));
    TUTTI_EXPECT_OK(tutti_all_reduce(value, value, 1, tutti_float32, tutti_sum, comm, nullptr));
    EXPECT_EQ(tutti_group_end(), tutti_unsupported);
  };
  expect_called_off(impossible, "does not apply their factors of a pre-multiplied sum");
}

TEST(Group, FailsOnPeers_WhenMessageToSelfIsNotReceived) {
  const auto alone = [](tutti_comm comm, float* value) {
    tutti_group_start();
    TUTTI_EXPECT_OK(tutti_send(value, 1, tutti_float32, 0, comm, nullptr));
    EXPECT_EQ(tutti_group_end(), tutti_invalid_usage);
  };
  expect_called_off(alone, "rank 0 sends itself 1 messages and receives 0");
}

// Rank 1 makes none of its calls before rank 0's group fails.
TEST(Group, FailsAfterEarlierCallsComplete) {
  const Ranks ranks(2);
  std::atomic<bool> refused = false;
  ranks.run([&](int rank, tutti_comm comm) {
    float value = 1, other = 1;
    if (rank == 1) {
      refused.wait(false);
      TUTTI_EXPECT_OK(tutti_all_reduce(&value, &value, 1, tutti_float32, tutti_sum, comm, nullptr));
      EXPECT_EQ(value, 2);
      EXPECT_EQ(tutti_all_reduce(&other, &other, 1, tutti_float32, tutti_sum, comm, nullptr), tutti_remote_error);
      return;
    }
    tutti_stream stream = nullptr;
    TUTTI_EXPECT_OK(tutti_stream_create(&stream));
    TUTTI_EXPECT_OK(tutti_all_reduce(&value, &value, 1, tutti_float32, tutti_sum, comm, stream));
    tutti_group_start();
    TUTTI_EXPECT_OK(tutti_all_reduce(&other, &other, 1, tutti_float32, tutti_sum, comm, stream));
    EXPECT_EQ(tutti_send(&other, 1, tutti_float32, 9, comm, nullptr), tutti_invalid_argument);
    EXPECT_EQ(tutti_group_end(), tutti_invalid_argument);
    refused = true;
    refused.notify_one();
    EXPECT_EQ(tutti_stream_destroy(stream), tutti_invalid_argument);
    EXPECT_EQ(value, 2);
  });
}

TEST(Split, OrdersByKeyWithinColors) {
  Ranks(4).run([](int rank, tutti_comm comm) {
    tutti_comm part = nullptr;
    TUTTI_EXPECT_OK(tutti_comm_split(comm, rank == 3 ? TUTTI_COLOR_NONE : rank % 2, -rank, nullptr, &part));
    if (rank == 3) {
      EXPECT_EQ(part, nullptr);
      return;
    }
    int part_rank = -1, ranks = -1;
    TUTTI_EXPECT_OK(tutti_comm_rank(part, &part_rank));
    TUTTI_EXPECT_OK(tutti_comm_ranks(part, &ranks));
    EXPECT_EQ(ranks, rank == 1 ? 1 : 2);
    EXPECT_EQ(part_rank, rank == 0 ? 1 : 0);  // The key is -rank: rank 2 precedes rank 0.
    std::int32_t sum = rank;
    TUTTI_EXPECT_OK(tutti_all_reduce(&sum, &sum, 1, tutti_int32, tutti_sum, part, nullptr));
    EXPECT_EQ(sum, rank == 1 ? 1 : 2);
    TUTTI_EXPECT_OK(tutti_comm_destroy(part));
  });
}

TEST(Mismatch, IsReportedToAllRanks_WithBothCalls) {
  const Ranks ranks(2);
  ranks.run([](int rank, tutti_comm comm) {
    Vector memory(100);
    const std::size_t count = rank == 0 ? 10 : 20;
    EXPECT_EQ(tutti_all_reduce(memory.data(), memory.data(), count, tutti_int32, tutti_sum, comm, nullptr),
              tutti_invalid_usage);
    EXPECT_NE(last_error().find("10"), std::string::npos) << last_error();
    EXPECT_NE(last_error().find("20"), std::string::npos) << last_error();
  });
}

TEST(Abort, EndsWaitsOfAllRanks) {
  const Ranks ranks(3);
  std::atomic<int> left_first = 0;  // An abort also ends the first call, if a rank is still in it.
  ranks.run([&](int rank, tutti_comm comm) {
    std::int32_t value = 1;
    TUTTI_EXPECT_OK(tutti_all_reduce(&value, &value, 1, tutti_int32, tutti_sum, comm, nullptr));
    ++left_first;
    if (rank == 0) {  // Never makes the second call.
      while (left_first < ranks.count()) std::this_thread::yield();
      TUTTI_EXPECT_OK(tutti_comm_abort(comm));
      return;
    }
    EXPECT_EQ(tutti_all_reduce(&value, &value, 1, tutti_int32, tutti_sum, comm, nullptr), tutti_aborted);
    tutti_status error = tutti_ok;
    TUTTI_EXPECT_OK(tutti_comm_async_error(comm, &error));
    EXPECT_EQ(error, tutti_aborted);
  });
}

}  // namespace
}  // namespace tutti::test
