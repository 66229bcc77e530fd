// bool, complex types and bitwise reductions through the C API.
#include <array>
#include <complex>

#include "tests/api/ranks.h"

namespace tutti::test {
namespace {

bool reports(const std::string& part) { return last_error().find(part) != std::string::npos; }

TEST(BoolType, ReducesLogically) {
  constexpr std::size_t kCount = 4;  // False and false, true and false, false and true, true and true.
  Ranks(2).run([](int rank, tutti_comm comm) {
    const bool send[kCount] = {false, rank == 0, rank == 1, true};
    const auto expect = [&](tutti_reduction reduction, std::array<bool, kCount> wanted) {
      std::array<bool, kCount> recv = {};
      TUTTI_EXPECT_OK(tutti_all_reduce(send, recv.data(), kCount, tutti_bool, reduction, comm, nullptr));
      EXPECT_EQ(recv, wanted) << reduction;
    };
    for (const tutti_reduction either : {tutti_sum, tutti_max, tutti_bor}) expect(either, {false, true, true, true});
    for (const tutti_reduction both : {tutti_prod, tutti_min, tutti_band}) expect(both, {false, false, false, true});
    expect(tutti_bxor, {false, true, true, false});
  });
}

TEST(BitwiseReduction, CombinesBitsOfIntegers) {
  Ranks(3).run([](int rank, tutti_comm comm) {
    const std::int16_t send[] = {static_cast<std::int16_t>(~(1 << rank)), static_cast<std::int16_t>(1 << rank), 0x0ff0};
    std::array<std::int16_t, 3> recv = {};
    const auto reduce = [&](tutti_reduction reduction) {
      TUTTI_EXPECT_OK(tutti_all_reduce(send, recv.data(), recv.size(), tutti_int16, reduction, comm, nullptr));
      return recv;
    };
    EXPECT_EQ(reduce(tutti_band), (std::array<std::int16_t, 3>{~7, 0, 0x0ff0}));
    EXPECT_EQ(reduce(tutti_bor), (std::array<std::int16_t, 3>{-1, 7, 0x0ff0}));
    EXPECT_EQ(reduce(tutti_bxor), (std::array<std::int16_t, 3>{~7, 7, 0x0ff0}));
  });
}

template <typename T>
struct ComplexType : testing::Test {
  using Number = std::complex<T>;
  static constexpr tutti_type kType = sizeof(T) == sizeof(float) ? tutti_complex64 : tutti_complex128;

  static Number reduced(Number value, tutti_reduction reduction, tutti_comm comm) {
    TUTTI_EXPECT_OK(tutti_all_reduce(&value, &value, 1, kType, reduction, comm, nullptr));
    return value;
  }
};
using Parts = testing::Types<float, double>;
TYPED_TEST_SUITE(ComplexType, Parts);

TYPED_TEST(ComplexType, HasSumProductAndAverage) {
  using Value = typename TestFixture::Number;
  Ranks(2).run([](int rank, tutti_comm comm) {
    const Value value = rank == 0 ? Value(1, 2) : Value(3, -4);
    EXPECT_EQ(TestFixture::reduced(value, tutti_sum, comm), Value(4, -2));
    EXPECT_EQ(TestFixture::reduced(value, tutti_prod, comm), Value(11, 2));
    EXPECT_EQ(TestFixture::reduced(value, tutti_avg, comm), Value(2, -1));
  });
}

TYPED_TEST(ComplexType, HasComplexScalars) {
  using Value = typename TestFixture::Number;
  Ranks(2).run([](int rank, tutti_comm comm) {
    // The alignment is that of a part.
    alignas(32) Value scalars[2] = {};
    auto* scalar = reinterpret_cast<Value*>(reinterpret_cast<TypeParam*>(scalars) + 1);
    *scalar = rank == 0 ? Value(0, 1) : Value(2, 0);
    tutti_reduction copied = 0, referenced = 0;
    TUTTI_EXPECT_OK(tutti_reduction_create_pre_mul_sum(scalar, TestFixture::kType, comm, &copied));
    TUTTI_EXPECT_OK(tutti_reduction_create_pre_mul_sum_at(scalar, TestFixture::kType, comm, &referenced));
    const Value value = rank == 0 ? Value(1, 2) : Value(3, -4);  // i (1 + 2 i) + 2 (3 - 4 i)
    EXPECT_EQ(TestFixture::reduced(value, copied, comm), Value(4, -7));
    EXPECT_EQ(TestFixture::reduced(value, referenced, comm), Value(4, -7));
    TUTTI_EXPECT_OK(tutti_reduction_destroy(copied, comm));
    TUTTI_EXPECT_OK(tutti_reduction_destroy(referenced, comm));
  });
}

TEST(ComplexMessage, KeepsBits_WithUnequalCounts) {
  Ranks(3).run([](int rank, tutti_comm comm) {
    // Rank r sends r + p + 1 numbers to rank p.
    std::vector<std::complex<double>> send, recv;
    std::vector<std::size_t> counts, displacements;
    for (int peer = 0; peer < 3; ++peer) {
      displacements.push_back(send.size());
      counts.push_back(static_cast<std::size_t>(rank + peer + 1));
      for (std::size_t i = 0; i < counts.back(); ++i) send.emplace_back(rank * 10 + peer, i + 0.5);
    }
    recv.resize(send.size());
    TUTTI_EXPECT_OK(tutti_all_to_all_v(send.data(), counts.data(), displacements.data(), recv.data(), counts.data(),
                                       displacements.data(), tutti_complex128, comm, nullptr));
    for (std::size_t peer = 0; peer < 3; ++peer) {
      for (std::size_t i = 0; i < counts[peer]; ++i)
        EXPECT_EQ(recv[displacements[peer] + i], std::complex<double>(static_cast<double>(peer) * 10 + rank, i + 0.5));
    }
  });
}

TEST(UndefinedReduction, IsRefused_WithDefinedOnes) {
  Ranks(1).run([](int, tutti_comm comm) {
    std::complex<double> memory[2] = {};
    const auto refuse = [&](tutti_type type, tutti_reduction reduction, const std::string& part) {
      EXPECT_EQ(tutti_all_reduce(memory, memory, 1, type, reduction, comm, nullptr), tutti_invalid_argument);
      EXPECT_TRUE(reports(part)) << last_error();
    };
    refuse(tutti_complex64, tutti_max, "max of complex64 is not defined; pass one of sum, prod, avg, pre_mul_sum");
    refuse(tutti_complex128, tutti_bor, "bor of complex128 is not defined");
    refuse(tutti_bool, tutti_avg, "avg of bool is not defined; pass one of sum, prod, min, max, band, bor, bxor");
    refuse(tutti_float32, tutti_band, "band of float32 is not defined");
    refuse(tutti_float8_e5m2, tutti_bxor, "bxor of float8_e5m2 is not defined");
    refuse(tutti_int32, tutti_bxor + 1, "invalid reduction 8");
    refuse(static_cast<tutti_type>(tutti_complex128 + 1), tutti_sum, "invalid data type 17");
    tutti_reduction made = 0;
    EXPECT_EQ(tutti_reduction_create_pre_mul_sum(memory, tutti_bool, comm, &made), tutti_invalid_argument);
    EXPECT_TRUE(reports("pre_mul_sum of bool is not defined")) << last_error();
    TUTTI_EXPECT_OK(tutti_broadcast(memory, memory, 1, tutti_complex128, 0, comm, nullptr));
  });
}

TEST(Mismatch, NamesNewTypesAndReductions) {
  Ranks(2).run([](int rank, tutti_comm comm) {
    std::uint64_t memory[8] = {};
    const tutti_type type = rank == 0 ? tutti_bool : tutti_uint8;
    const tutti_reduction reduction = rank == 0 ? tutti_band : tutti_bxor;
    EXPECT_EQ(tutti_all_reduce(memory, memory, 5, type, reduction, comm, nullptr), tutti_invalid_usage);
    EXPECT_TRUE(reports("all_reduce(5 bool, band)")) << last_error();
    EXPECT_TRUE(reports("all_reduce(5 uint8, bxor)")) << last_error();
  });
  Ranks(2).run([](int rank, tutti_comm comm) {
    double memory[8] = {};
    if (rank == 0) {
      tutti_send(memory, 3, tutti_complex128, 1, comm, nullptr);
    } else {
      EXPECT_EQ(tutti_recv(memory, 3, tutti_complex64, 0, comm, nullptr), tutti_invalid_usage);
      EXPECT_TRUE(reports("recv(3 complex64, from rank 0)")) << last_error();
      EXPECT_TRUE(reports("send(3 complex128, to rank 1)")) << last_error();
    }
  });
}

}  // namespace
}  // namespace tutti::test
