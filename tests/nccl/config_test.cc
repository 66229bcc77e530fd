// ncclConfig_t, with communicators of one rank.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "src/nccl/abi.h"
#include "tests/nccl/clients.h"

namespace tutti::test {
namespace {

ncclResult_t init_with(void* config, ncclComm_t* comm) {
  ncclUniqueId id;
  NCCL_EXPECT_OK(ncclGetUniqueId(&id));
  return ncclCommInitRankConfig(comm, 1, id, 0, static_cast<ncclConfig_t*>(config));
}

ncclResult_t try_config(void* config) {
  ncclComm_t comm = nullptr;
  const ncclResult_t result = init_with(config, &comm);
  EXPECT_EQ(comm == nullptr, result != ncclSuccess && result != ncclInProgress);
  if (comm != nullptr) outcome_of(comm);
  NCCL_EXPECT_OK(ncclCommDestroy(comm));
  return result;
}

TEST(Config, MayBeNullOrDefault) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  EXPECT_EQ(try_config(nullptr), ncclSuccess);
  EXPECT_EQ(try_config(&config), ncclSuccess);
}

TEST(Config, RejectsWrongMagic) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.magic = 1;
  EXPECT_EQ(try_config(&config), ncclInvalidArgument);
  expect_error_text("NCCL_CONFIG_INITIALIZER");
}

TEST(Config, RejectsInvalidValues) {
  const std::vector<std::pair<int ncclConfig_t::*, int>> wrong = {
      {&ncclConfig_t::blocking, 2},          {&ncclConfig_t::cgaClusterSize, -1}, {&ncclConfig_t::minCTAs, 0},
      {&ncclConfig_t::maxCTAs, -3},          {&ncclConfig_t::splitShare, 2},      {&ncclConfig_t::CTAPolicy, 4},
      {&ncclConfig_t::shrinkShare, -1},      {&ncclConfig_t::nvlsCTAs, 0},        {&ncclConfig_t::collnetEnable, 3},
      {&ncclConfig_t::nvlinkCentricSched, 2}};
  for (const auto& [field, value] : wrong) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.*field = value;
    EXPECT_EQ(try_config(&config), ncclInvalidArgument) << value;
    expect_error_text("config.");
  }
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.minCTAs = 8;
  config.maxCTAs = 4;
  EXPECT_EQ(try_config(&config), ncclInvalidArgument);
}

TEST(Config, AcceptsGpuOptions) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.cgaClusterSize = 2;
  config.minCTAs = 4;
  config.maxCTAs = 32;
  config.splitShare = 1;
  config.CTAPolicy = NCCL_CTA_POLICY_ZERO;
  config.nvlinkCentricSched = 1;
  config.netName = "Socket";
  config.commName = "gradients";
  config.trafficClass = 3;
  EXPECT_EQ(try_config(&config), ncclSuccess);
  config.CTAPolicy = NCCL_CTA_POLICY_EFFICIENCY | NCCL_CTA_POLICY_ZERO;
  EXPECT_EQ(try_config(&config), ncclSuccess);
}

TEST(Config, ChecksNameOfNetwork) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.netName = "AWS Libfabric";
  EXPECT_EQ(try_config(&config), ncclInvalidArgument);
  expect_error_text("config.netName is \"AWS Libfabric\": pass Socket, IB or UCX, or leave it NULL");
  config.version = NCCL_VERSION(2, 14, 3);
  EXPECT_EQ(try_config(&config), ncclSuccess) << "its version does not have the field";
  config = NCCL_CONFIG_INITIALIZER;
  config.netName = "socket";
  EXPECT_EQ(try_config(&config), ncclSuccess);
  ::setenv("NCCL_NET", "AWS Libfabric", 1);
  EXPECT_EQ(try_config(&config), ncclSuccess) << "a plugin has no effect";
  ::unsetenv("NCCL_NET");
}

// Without an RDMA device, a request for it fails, and names it.
TEST(Config, OpensRequestedNetwork) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.netName = "IB";
  const ncclResult_t by_config = try_config(&config);
  if (by_config != ncclSuccess) expect_error_text("RDMA");
  ::setenv("NCCL_NET", "IB", 1);
  config.netName = "Socket";
  EXPECT_EQ(try_config(&config), by_config);
  if (by_config != ncclSuccess) expect_error_text("RDMA");
  ::unsetenv("NCCL_NET");
}

TEST(Config, SubCommunicatorsKeepNetworkOfParent) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.netName = "Socket";
  const NcclRanks ranks(2, config);
  ncclConfig_t other = NCCL_CONFIG_INITIALIZER;
  other.netName = "UCX";
  ranks.run([&](int rank, ncclComm_t comm) {
    ncclComm_t part = nullptr;
    EXPECT_EQ(ncclCommSplit(comm, 0, 0, &part, &other), ncclInvalidArgument);
    ncclConfig_t silent = NCCL_CONFIG_INITIALIZER;
    for (ncclConfig_t* same : {&config, &silent}) {
      ASSERT_EQ(ncclCommSplit(comm, 0, 0, &part, same), ncclSuccess) << ncclGetLastError(nullptr);
      expect_sum(part, rank, 3);
      NCCL_EXPECT_OK(ncclCommDestroy(part));
    }
  });
  expect_error_text("config.netName differs from that of the parent communicator");
}

// Unlike another network, another class is no error: the communicator uses the connections of its parent.
TEST(Config, SubCommunicatorsKeepTrafficClassOfParent) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.trafficClass = 3;
  const NcclRanks ranks(2, config);
  ncclConfig_t other = NCCL_CONFIG_INITIALIZER;
  other.trafficClass = 4;
  ranks.run([&](int rank, ncclComm_t comm) {
    ncclConfig_t silent = NCCL_CONFIG_INITIALIZER;
    for (ncclConfig_t* given : {&config, &silent, &other}) {
      ncclComm_t part = nullptr;
      ASSERT_EQ(ncclCommSplit(comm, 0, 0, &part, given), ncclSuccess) << ncclGetLastError(nullptr);
      expect_sum(part, rank, 3);
      NCCL_EXPECT_OK(ncclCommDestroy(part));
    }
  });
}

// An older program's config is shorter; memory behind it does not belong to it.
TEST(Config, IgnoresFields_BeyondSizeOfOlderProgram) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.size = offsetof(ncclConfig_t, cgaClusterSize);
  config.version = NCCL_VERSION(2, 14, 3);
  config.cgaClusterSize = config.splitShare = config.nvlsCTAs = -77;
  EXPECT_EQ(try_config(&config), ncclSuccess);

  config = NCCL_CONFIG_INITIALIZER;
  config.version = NCCL_VERSION(2, 17, 1);
  config.collnetEnable = -77;
  EXPECT_EQ(try_config(&config), ncclSuccess) << "its version does not have the field";
  config.version = NCCL_VERSION(2, 13, 4);
  config.blocking = 77;
  EXPECT_EQ(try_config(&config), ncclSuccess);
}

// Longer than all known fields, with any nccl.h.
TEST(Config, AcceptsConfig_OfNewerProgram) {
  struct {
    nccl::ncclConfig_t known;
    int later[20];
  } newer;
  const ncclConfig_t usual = NCCL_CONFIG_INITIALIZER;
  std::memcpy(static_cast<void*>(&newer), &usual, offsetof(nccl::ncclConfig_t, graphUsageMode));
  newer.known.graphUsageMode = newer.known.numRmaCtx = NCCL_CONFIG_UNDEF_INT;
  newer.known.maxP2pPeers = newer.known.graphStreamOrdering = NCCL_CONFIG_UNDEF_INT;
  std::fill(std::begin(newer.later), std::end(newer.later), NCCL_CONFIG_UNDEF_INT);
  newer.known.size = sizeof newer;
  newer.known.version = 99900;
  EXPECT_EQ(try_config(&newer), ncclSuccess);
  newer.known.graphUsageMode = 7;  // A field of 2.29: 0 to 2.
  EXPECT_EQ(try_config(&newer), ncclInvalidArgument);
  newer.known.version = NCCL_VERSION(2, 28, 9);
  EXPECT_EQ(try_config(&newer), ncclSuccess) << "its version does not have the field";
}

TEST(Config, IsOverriddenByEnvironment) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ::setenv("NCCL_COMM_BLOCKING", "0", 1);
  EXPECT_EQ(try_config(&config), ncclInProgress);
  ::setenv("NCCL_COMM_BLOCKING", "1", 1);
  config.blocking = 0;
  EXPECT_EQ(try_config(&config), ncclSuccess);
  ::unsetenv("NCCL_COMM_BLOCKING");
  config = NCCL_CONFIG_INITIALIZER;
  config.minCTAs = 4;
  ::setenv("NCCL_MAX_CTAS", "2", 1);
  EXPECT_EQ(try_config(&config), ncclInvalidArgument);
  expect_error_text("config.minCTAs is 4, more than NCCL_MAX_CTAS, 2;");
  ::setenv("NCCL_MIN_CTAS", "3", 1);
  EXPECT_EQ(try_config(&config), ncclInvalidArgument);
  expect_error_text("NCCL_MIN_CTAS is 3, more than NCCL_MAX_CTAS, 2;");
  ::setenv("NCCL_MIN_CTAS", "1", 1);
  EXPECT_EQ(try_config(&config), ncclSuccess);
  ::unsetenv("NCCL_MIN_CTAS");
  ::setenv("NCCL_MAX_CTAS", "many", 1);
  EXPECT_EQ(try_config(&config), ncclSuccess) << "an invalid value has no effect";
  ::unsetenv("NCCL_MAX_CTAS");
}

#ifndef __SANITIZE_THREAD__  // It supports no threads in the child of a process with threads.
// Runs in a child, since each variable is logged once in a process.
TEST(Config, WarnsOnce_WhenVariableIsIgnored) {
  for (const char* level : {"warn", "none"}) {
    const std::string file = ::testing::TempDir() + "nccl_config_log." + std::to_string(::getpid());
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv("TUTTI_LOG", level, 1);
      ::setenv("TUTTI_LOG_FILE", file.c_str(), 1);
      ::setenv("NCCL_COMM_BLOCKING", "7", 1);
      ::setenv("NCCL_MIN_CTAS", "0", 1);
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      ::_exit(try_config(&config) == ncclSuccess && try_config(&config) == ncclSuccess ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    std::ifstream log(file);
    const std::string text((std::istreambuf_iterator<char>(log)), {});
    ::unlink(file.c_str());
    for (const char* line : {"TUTTI WARN NCCL_COMM_BLOCKING is \"7\", but must be 0 or 1: ignored\n",
                             "TUTTI WARN NCCL_MIN_CTAS is \"0\", but must be a whole number, 1 or more: ignored\n"}) {
      const std::size_t first = text.find(line);
      EXPECT_EQ(first != std::string::npos, std::strcmp(level, "warn") == 0) << level << ": " << text;
      EXPECT_EQ(text.find(line, first + 1), std::string::npos) << level << ": " << text;
    }
  }
}
#endif

}  // namespace
}  // namespace tutti::test
