// Lists of RDMA devices with the syntax of NCCL_IB_HCA, and the errors without an RDMA library.
#include "transports/verbs/hca_filter.h"

#include <gtest/gtest.h>

#include "transports/verbs/library.h"

namespace tutti::test {
namespace {

TEST(HcaFilter, AdmitsAll_WithoutList) {
  EXPECT_TRUE(HcaFilter("").admits("mlx5_0", 1));
  EXPECT_TRUE(HcaFilter("^").admits("mlx5_0", 1));
  EXPECT_TRUE(HcaFilter("=").admits("mlx5_0", 1));
}

// Excluding one device does not request another that is unsuitable by default.
TEST(HcaFilter, NamesOnlyListedDevices) {
  EXPECT_TRUE(HcaFilter("rxe").names("rxe0", 1));
  EXPECT_TRUE(HcaFilter("=mlx5_0,rxe0:1").names("rxe0", 1));
  EXPECT_FALSE(HcaFilter("=mlx5_0,rxe0:1").names("rxe0", 2));
  for (const char* list : {"", "^", "^mlx5", "^rxe1", "mlx5"}) EXPECT_FALSE(HcaFilter(list).names("rxe0", 1)) << list;
}

TEST(HcaFilter, MatchesPrefixes) {
  const HcaFilter filter("mlx5_1,rxe");
  EXPECT_TRUE(filter.admits("mlx5_1", 1));
  EXPECT_TRUE(filter.admits("mlx5_10", 2));
  EXPECT_TRUE(filter.admits("rxe0", 1));
  EXPECT_FALSE(filter.admits("mlx5_0", 1));
  EXPECT_FALSE(filter.admits("my_rxe", 1));
}

TEST(HcaFilter, MatchesWholeNames_AfterEqualsSign) {
  const HcaFilter filter("=mlx5_1,mlx5_3");
  EXPECT_TRUE(filter.admits("mlx5_1", 1));
  EXPECT_TRUE(filter.admits("mlx5_3", 2));
  EXPECT_FALSE(filter.admits("mlx5_10", 1));
}

TEST(HcaFilter, Excludes_AfterCaret) {
  const HcaFilter beginnings("^mlx5_1");
  EXPECT_FALSE(beginnings.admits("mlx5_1", 1));
  EXPECT_FALSE(beginnings.admits("mlx5_10", 1));
  EXPECT_TRUE(beginnings.admits("mlx5_0", 1));
  const HcaFilter names("^=mlx5_1,mlx5_2");
  EXPECT_FALSE(names.admits("mlx5_2", 1));
  EXPECT_TRUE(names.admits("mlx5_10", 1));
}

TEST(HcaFilter, DistinguishesPorts) {
  const HcaFilter filter("=mlx5_0:2,mlx5_1");
  EXPECT_FALSE(filter.admits("mlx5_0", 1));
  EXPECT_TRUE(filter.admits("mlx5_0", 2));
  EXPECT_TRUE(filter.admits("mlx5_1", 1));
  EXPECT_TRUE(filter.admits("mlx5_1", 2));
  const HcaFilter all_but("^mlx5_0:2");
  EXPECT_TRUE(all_but.admits("mlx5_0", 1));
  EXPECT_FALSE(all_but.admits("mlx5_0", 2));
}

TEST(VerbsLibrary, ReportsMissingLibrary) {
  Status missing = open_verbs_library("libtutti-no-such-library.so.1").status();
  EXPECT_EQ(missing.code(), Code::unsupported);
  EXPECT_NE(missing.message().find("libtutti-no-such-library.so.1"), std::string::npos) << missing.message();
  EXPECT_NE(missing.message().find("libibverbs1"), std::string::npos) << missing.message();
}

TEST(VerbsLibrary, NamesMissingFunctions) {
  Status old = open_verbs_library("libc.so.6").status();
  EXPECT_EQ(old.code(), Code::unsupported);
  EXPECT_NE(old.message().find("ibv_open_device, "), std::string::npos) << old.message();
  EXPECT_NE(old.message().find("_ibv_query_gid_ex"), std::string::npos) << old.message();
}

}  // namespace
}  // namespace tutti::test
