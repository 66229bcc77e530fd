// Results of each collective on host memory and on a device. Ranks run in threads, or one thread runs all ranks in a
// group.
#include <bit>
#include <cmath>

#include "tests/nccl/clients.h"

namespace tutti::test {
namespace {

constexpr int kRanks = 3;
constexpr std::size_t kCounts[] = {1, 100, 70'000};

enum class Driven { by_threads, by_one_thread };

struct Buffers {
  std::vector<std::int32_t> send, recv;
};
using Body = std::function<ncclResult_t(int rank, ncclComm_t comm, Buffers& buffers)>;

class Collectives : public ::testing::TestWithParam<Driven> {
 protected:
  // Runs the body on all ranks, with send_blocks * count values of each, and space for recv_blocks * count.
  void run(std::size_t send_count, std::size_t recv_count, const Body& body) {
    buffers_.assign(kRanks, {});
    for (int rank = 0; rank < kRanks; ++rank) {
      buffers_[rank] = {values_of<std::int32_t>(rank, send_count), std::vector<std::int32_t>(recv_count, -1)};
    }
    const auto one = [&](int rank, ncclComm_t comm) { NCCL_EXPECT_OK(body(rank, comm, buffers_[rank])); };
    if (GetParam() == Driven::by_threads) {
      ranks_.run(one);
    } else {
      NCCL_EXPECT_OK(ranks_.run_in_group(one));
    }
    for (int rank = 0; rank < kRanks; ++rank) finish(rank);
  }

  // Checks every rank, or one.
  void expect(const std::function<int(int rank, std::size_t i)>& expected, int only = -1) {
    for (int rank = 0; rank < kRanks; ++rank) {
      const std::vector<std::int32_t>& recv = buffers_[rank].recv;
      for (std::size_t i = 0; i < recv.size() && (only < 0 || rank == only); ++i) {
        ASSERT_EQ(recv[i], expected(rank, i)) << "rank " << rank << ", element " << i << " of " << recv.size();
      }
    }
  }

  const NcclRanks ranks_{kRanks};
  std::vector<Buffers> buffers_;
};
INSTANTIATE_TEST_SUITE_P(, Collectives, ::testing::Values(Driven::by_threads, Driven::by_one_thread),
                         [](const auto& parameter) {
                           return std::string(parameter.param == Driven::by_threads ? "ByThreads" : "ByOneThread");
                         });

TEST_P(Collectives, AllReduce) {
  for (const std::size_t count : kCounts) {
    run(count, count, [=](int rank, ncclComm_t comm, Buffers& own) {
      return ncclAllReduce(own.send.data(), own.recv.data(), count, ncclInt32, ncclSum, comm, stream_of(rank));
    });
    expect([](int, std::size_t i) { return sum_of(kRanks, i); });
  }
}

TEST_P(Collectives, AllReduceInPlace) {
  run(500, 0, [](int rank, ncclComm_t comm, Buffers& own) {
    own.recv = own.send;
    return ncclAllReduce(own.recv.data(), own.recv.data(), 500, ncclInt32, ncclSum, comm, stream_of(rank));
  });
  expect([](int, std::size_t i) { return sum_of(kRanks, i); });
}

TEST_P(Collectives, AllGather) {
  for (const std::size_t count : kCounts) {
    run(count, kRanks * count, [=](int rank, ncclComm_t comm, Buffers& own) {
      return ncclAllGather(own.send.data(), own.recv.data(), count, ncclInt32, comm, stream_of(rank));
    });
    expect([=](int, std::size_t i) { return value_of(static_cast<int>(i / count), i % count); });
  }
}

TEST_P(Collectives, ReduceScatter) {
  for (const std::size_t count : kCounts) {
    run(kRanks * count, count, [=](int rank, ncclComm_t comm, Buffers& own) {
      return ncclReduceScatter(own.send.data(), own.recv.data(), count, ncclInt32, ncclSum, comm, stream_of(rank));
    });
    expect([=](int rank, std::size_t i) { return sum_of(kRanks, static_cast<std::size_t>(rank) * count + i); });
  }
}

TEST_P(Collectives, Broadcast) {
  for (int root = 0; root < kRanks; ++root) {
    run(300, 300, [=](int rank, ncclComm_t comm, Buffers& own) {
      const void* send = rank == root ? own.send.data() : nullptr;
      return ncclBroadcast(send, own.recv.data(), 300, ncclInt32, root, comm, stream_of(rank));
    });
    expect([=](int, std::size_t i) { return value_of(root, i); });
  }
}

TEST_P(Collectives, BcastInPlace) {
  run(300, 0, [](int rank, ncclComm_t comm, Buffers& own) {
    own.recv = own.send;
    return ncclBcast(own.recv.data(), 300, ncclInt32, 1, comm, stream_of(rank));
  });
  expect([](int, std::size_t i) { return value_of(1, i); });
}

TEST_P(Collectives, Reduce_WithRecvbuffOnRootOnly) {
  for (int root = 0; root < kRanks; ++root) {
    run(300, 300, [=](int rank, ncclComm_t comm, Buffers& own) {
      void* recv = rank == root ? own.recv.data() : nullptr;
      return ncclReduce(own.send.data(), recv, 300, ncclInt32, ncclSum, root, comm, stream_of(rank));
    });
    expect([](int, std::size_t i) { return sum_of(kRanks, i); }, root);
  }
}

TEST_P(Collectives, AlltoAll) {
  for (const std::size_t count : kCounts) {
    run(kRanks * count, kRanks * count, [=](int rank, ncclComm_t comm, Buffers& own) {
      return ncclAlltoAll(own.send.data(), own.recv.data(), count, ncclInt32, comm, stream_of(rank));
    });
    expect([=](int rank, std::size_t i) {
      return value_of(static_cast<int>(i / count), static_cast<std::size_t>(rank) * count + i % count);
    });
  }
}

TEST_P(Collectives, GatherAndScatter) {
  run(200, kRanks * 200, [](int rank, ncclComm_t comm, Buffers& own) {
    void* recv = rank == 2 ? own.recv.data() : nullptr;
    return ncclGather(own.send.data(), recv, 200, ncclInt32, 2, comm, stream_of(rank));
  });
  expect([](int, std::size_t i) { return value_of(static_cast<int>(i / 200), i % 200); }, 2);
  run(kRanks * 200, 200, [](int rank, ncclComm_t comm, Buffers& own) {
    const void* send = rank == 1 ? own.send.data() : nullptr;
    return ncclScatter(send, own.recv.data(), 200, ncclInt32, 1, comm, stream_of(rank));
  });
  expect([](int rank, std::size_t i) { return value_of(1, static_cast<std::size_t>(rank) * 200 + i); });
}

// Each rank sends to the next rank and receives from the previous one in a group, like sendrecv of nccl-tests.
TEST_P(Collectives, SendAndRecvInGroup) {
  run(5'000, 5'000, [](int rank, ncclComm_t comm, Buffers& own) {
    NCCL_EXPECT_OK(ncclGroupStart());
    NCCL_EXPECT_OK(ncclSend(own.send.data(), 5'000, ncclInt32, (rank + 1) % kRanks, comm, stream_of(rank)));
    NCCL_EXPECT_OK(ncclRecv(own.recv.data(), 5'000, ncclInt32, (rank + kRanks - 1) % kRanks, comm, stream_of(rank)));
    return ncclGroupEnd();
  });
  expect([](int rank, std::size_t i) { return value_of((rank + kRanks - 1) % kRanks, i); });
}

// nccl-tests runs these calls in place, and checks only that they complete.
TEST_P(Collectives, SendAndRecvWithOneBuffer_Complete) {
  run(5'000, 0, [](int rank, ncclComm_t comm, Buffers& own) {
    NCCL_EXPECT_OK(ncclGroupStart());
    NCCL_EXPECT_OK(ncclSend(own.send.data(), 5'000, ncclInt32, (rank + 1) % kRanks, comm, stream_of(rank)));
    NCCL_EXPECT_OK(ncclRecv(own.send.data(), 5'000, ncclInt32, (rank + kRanks - 1) % kRanks, comm, stream_of(rank)));
    return ncclGroupEnd();
  });
}

TEST_P(Collectives, SeveralInOneGroup) {
  run(900, 900, [](int rank, ncclComm_t comm, Buffers& own) {
    NCCL_EXPECT_OK(ncclGroupStart());
    NCCL_EXPECT_OK(ncclAllReduce(own.send.data(), own.recv.data(), 300, ncclInt32, ncclSum, comm, stream_of(rank)));
    NCCL_EXPECT_OK(
        ncclAllReduce(own.send.data() + 300, own.recv.data() + 300, 300, ncclInt32, ncclMax, comm, stream_of(rank)));
    NCCL_EXPECT_OK(
        ncclBroadcast(own.send.data() + 600, own.recv.data() + 600, 300, ncclInt32, 0, comm, stream_of(rank)));
    return ncclGroupEnd();
  });
  expect([](int, std::size_t i) {
    if (i < 300) return sum_of(kRanks, i);
    if (i >= 600) return value_of(0, i);
    return std::max({value_of(0, i), value_of(1, i), value_of(2, i)});
  });
}

TEST_P(Collectives, DoNothing_WithoutElements) {
  run(1, 1, [](int rank, ncclComm_t comm, Buffers&) {
    return ncclAllReduce(nullptr, nullptr, 0, ncclInt32, ncclSum, comm, stream_of(rank));
  });
  expect([](int, std::size_t) { return -1; });
}

template <typename T>
void expect_types(const NcclRanks& ranks, ncclDataType_t type) {
  std::vector<std::vector<T>> sums(kRanks, std::vector<T>(77));
  ranks.run([&](int rank, ncclComm_t comm) {
    const std::vector<T> send = values_of<T>(rank, 77);
    NCCL_EXPECT_OK(ncclAllReduce(send.data(), sums[rank].data(), 77, type, ncclSum, comm, stream_of(rank)));
    finish(rank);
  });
  for (const std::vector<T>& sum : sums) {
    for (std::size_t i = 0; i < sum.size(); ++i) {
      ASSERT_EQ(static_cast<double>(sum[i]), sum_of(kRanks, i)) << "type " << type << ", element " << i;
    }
  }
}

// A whole number in a 16-bit format, exact if it is small. The types of CUDA may be missing here.
template <int kFraction, int kBias>
struct Format {
  std::uint16_t bits = 0;

  Format() = default;
  constexpr explicit Format(int value) {
    if (value == 0) return;
    const int exponent = std::bit_width(static_cast<unsigned>(value)) - 1;
    const int fraction = ((value << kFraction) >> exponent) - (1 << kFraction);
    bits = static_cast<std::uint16_t>(((exponent + kBias) << kFraction) + fraction);
  }
  explicit operator double() const {
    if (bits == 0) return 0;
    const int fraction = bits % (1 << kFraction) + (1 << kFraction);
    return std::ldexp(fraction, (bits >> kFraction) - kBias - kFraction);
  }
};

using Half = Format<10, 15>;
using Bfloat16 = Format<7, 127>;
static_assert(Half(1).bits == 0x3c00 && Half(3).bits == 0x4200);
static_assert(Bfloat16(1).bits == 0x3f80 && Bfloat16(3).bits == 0x4040);

TEST(DataTypes, MatchNccl) {
  const NcclRanks ranks(kRanks);
  expect_types<std::int8_t>(ranks, ncclInt8);
  expect_types<std::uint8_t>(ranks, ncclUint8);
  expect_types<std::int32_t>(ranks, ncclInt32);
  expect_types<std::uint32_t>(ranks, ncclUint32);
  expect_types<std::int64_t>(ranks, ncclInt64);
  expect_types<std::uint64_t>(ranks, ncclUint64);
  expect_types<float>(ranks, ncclFloat32);
  expect_types<double>(ranks, ncclFloat64);
  expect_types<Half>(ranks, ncclFloat16);
  expect_types<Bfloat16>(ranks, ncclBfloat16);
}

// 1 + 1 + 1 = 3, whose bits differ between the 8-bit formats.
TEST(DataTypes, Support8BitFloats) {
  const NcclRanks ranks(kRanks);
  const struct {
    ncclDataType_t type;
    unsigned char one, three;
  } formats[] = {{ncclFloat8e4m3, 0x38, 0x44}, {ncclFloat8e5m2, 0x3c, 0x42}};
  for (const auto& format : formats) {
    ranks.run([&](int rank, ncclComm_t comm) {
      unsigned char value = format.one;
      NCCL_EXPECT_OK(ncclAllReduce(&value, &value, 1, format.type, ncclSum, comm, stream_of(rank)));
      finish(rank);
      EXPECT_EQ(value, format.three) << "type " << format.type;
    });
  }
}

TEST(DataTypes, RejectUnknownTypes) {
  const NcclRanks ranks(1);
  int value = 0;
  for (const int type : {-1, static_cast<int>(ncclNumTypes), 99}) {
    EXPECT_EQ(ncclAllReduce(&value, &value, 1, static_cast<ncclDataType_t>(type), ncclSum, ranks[0], nullptr),
              ncclInvalidArgument);
    expect_error_text("datatype");
  }
}

TEST(Calls, RejectInvalidArguments) {
  const NcclRanks ranks(1);
  const ncclComm_t comm = ranks[0];
  int value = 0;
  EXPECT_EQ(ncclBroadcast(&value, &value, 1, ncclInt32, 1, comm, stream_of(0)), ncclInvalidArgument);
  expect_error_text("root 1 is out of range");
  EXPECT_EQ(ncclSend(&value, 1, ncclInt32, -1, comm, stream_of(0)), ncclInvalidArgument);
  expect_error_text("peer -1 is out of range");
  EXPECT_EQ(ncclAllReduce(nullptr, &value, 1, ncclInt32, ncclSum, comm, stream_of(0)), ncclInvalidArgument);
  expect_error_text("ncclAllReduce: sendbuff is NULL");
  EXPECT_EQ(ncclAllReduce(&value, nullptr, 1, ncclInt32, ncclSum, comm, stream_of(0)), ncclInvalidArgument);
  NCCL_EXPECT_OK(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, stream_of(0)))
      << "what was refused did no harm";
}

}  // namespace
}  // namespace tutti::test
