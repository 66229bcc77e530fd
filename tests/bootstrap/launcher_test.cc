// Ranks as the variables of launchers describe them.
#include "src/bootstrap/launcher.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/bootstrap/slurm.h"

namespace tutti::test {
namespace {

using Variables = std::map<std::string, std::string>;

std::string failure(const Variables& variables) {
  return find_launched_rank(Environment(variables)).status().message();
}

LaunchedRank found(const Variables& variables) {
  Result<LaunchedRank> result = find_launched_rank(Environment(variables));
  EXPECT_TRUE(result.ok()) << failure(variables);
  return result.ok() ? result.value() : LaunchedRank{};
}

TEST(Launcher, IsNone_WhenNoVariableIsSet) {
  const LaunchedRank launched = found({{"HOME", "/root"}});
  EXPECT_EQ(launched.ranks, 1U);
  EXPECT_EQ(launched.launcher, "");
}

TEST(Launcher, RecognizesTorchrun) {
  const LaunchedRank launched = found({{"RANK", "3"},
                                       {"WORLD_SIZE", "8"},
                                       {"LOCAL_RANK", "1"},
                                       {"LOCAL_WORLD_SIZE", "2"},
                                       {"MASTER_ADDR", "host-a"},
                                       {"MASTER_PORT", "29400"}});
  EXPECT_EQ(launched.rank, 3U);
  EXPECT_EQ(launched.ranks, 8U);
  EXPECT_EQ(launched.point.host, "host-a");
  EXPECT_EQ(launched.point.port, 29401);  // torchrun's own store uses the port itself.
  EXPECT_EQ(launched.launcher, "torchrun (RANK, WORLD_SIZE, MASTER_ADDR)");
}

TEST(Launcher, UsesSocketOfHost_WhenAllRanksAreLocal) {
  Variables variables = {{"RANK", "1"},
                         {"WORLD_SIZE", "2"},
                         {"LOCAL_WORLD_SIZE", "2"},
                         {"MASTER_ADDR", "localhost"},
                         {"MASTER_PORT", "29400"}};
  const LaunchedRank first = found(variables);
  EXPECT_EQ(first.point.host, "");
  EXPECT_EQ(first.launcher, "torchrun (RANK, WORLD_SIZE)");
  variables["MASTER_PORT"] = "29500";
  EXPECT_NE(found(variables).point.job, first.point.job);
}

TEST(Launcher, RecognizesOpenMpi) {
  const LaunchedRank launched = found({{"OMPI_COMM_WORLD_RANK", "0"},
                                       {"OMPI_COMM_WORLD_SIZE", "4"},
                                       {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                                       {"PMIX_NAMESPACE", "1281622017"}});
  EXPECT_EQ(launched.ranks, 4U);
  EXPECT_NE(launched.point.job.find("1281622017"), std::string::npos);
  EXPECT_EQ(launched.launcher, "Open MPI (OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE)");
}

TEST(Launcher, RecognizesMpich) {
  const LaunchedRank launched = found({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}});
  EXPECT_EQ(launched.rank, 1U);
  EXPECT_NE(launched.point.job.find(std::to_string(::getppid())), std::string::npos);
}

TEST(Launcher, RecognizesSlurm) {
  Variables variables = {{"SLURM_PROCID", "5"},
                         {"SLURM_NTASKS", "6"},
                         {"SLURM_NNODES", "1"},
                         {"SLURM_JOB_ID", "77"},
                         {"SLURM_STEP_ID", "0"}};
  EXPECT_EQ(found(variables).rank, 5U);
  variables["SLURM_NNODES"] = "2";
  EXPECT_NE(failure(variables).find("SLURM_JOB_NODELIST is not set: set TUTTI_ROOT to host:port"), std::string::npos);
  variables["SLURM_JOB_NODELIST"] = "login";
  variables["SLURM_STEP_NODELIST"] = "node[01-04,07],gpu-a";
  EXPECT_EQ(found(variables).point.host, "node01");
  EXPECT_EQ(found(variables).launcher, "Slurm (SLURM_PROCID, SLURM_NTASKS, SLURM_STEP_NODELIST)");
  const std::uint16_t port = found(variables).point.port;
  variables["SLURM_STEP_ID"] = "1";
  EXPECT_NE(found(variables).point.port, port);
  variables["SLURM_JOB_ID"] = "4294967294";
  EXPECT_GE(found(variables).point.port, 10'000);
  EXPECT_LT(found(variables).point.port, 30'000);
  variables["SLURM_STEP_NODELIST"] = "node[01-04";
  EXPECT_NE(failure(variables).find("SLURM_STEP_NODELIST is \"node[01-04\", but must be a list"), std::string::npos);
  variables["TUTTI_ROOT"] = "[fd00::2]:4711";
  EXPECT_EQ(found(variables).point.host, "fd00::2");
  EXPECT_EQ(found(variables).point.port, 4711);
}

TEST(Launcher, RecognizesSlurm_WhichSetsVariablesOfMpich) {
  Variables variables = {{"SLURM_PROCID", "1"},  {"SLURM_NTASKS", "2"},  {"SLURM_NNODES", "2"},
                         {"SLURM_JOB_ID", "77"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NODELIST", "node[01-02]"},
                         {"PMI_RANK", "1"},      {"PMI_SIZE", "2"}};
  EXPECT_EQ(found(variables).point.host, "node01");
  variables["MPI_LOCALNRANKS"] = "2";  // By mpiexec, of which SLURM_PROCID is 1.
  EXPECT_EQ(found(variables).launcher, "MPICH (PMI_RANK, PMI_SIZE)");
  variables.erase("MPI_LOCALNRANKS");
  variables["PMI_RANK"] = "0";
  EXPECT_EQ(found(variables).launcher, "MPICH (PMI_RANK, PMI_SIZE)");
}

TEST(Launcher, PrefersTuttiVariables) {
  const LaunchedRank launched = found(
      {{"TUTTI_RANK", "1"}, {"TUTTI_RANKS", "2"}, {"TUTTI_ROOT", "host-b:4711"}, {"RANK", "7"}, {"WORLD_SIZE", "8"}});
  EXPECT_EQ(launched.rank, 1U);
  EXPECT_EQ(launched.point.host, "host-b");
  EXPECT_EQ(launched.launcher, "tutti (TUTTI_RANK, TUTTI_RANKS, TUTTI_ROOT)");
}

TEST(Launcher, NamesVariableAndValue_WhenInvalid) {
  EXPECT_EQ(failure({{"RANK", "two"}, {"WORLD_SIZE", "8"}}),
            "RANK is \"two\", but must be a whole number from 0 to 65535");
  EXPECT_EQ(failure({{"RANK", "0"}, {"WORLD_SIZE", "0"}}),
            "WORLD_SIZE is \"0\", but must be a whole number from 1 to 65536");
  EXPECT_EQ(failure({{"PMI_RANK", "4"}, {"PMI_SIZE", "4"}}),
            "PMI_RANK is 4, but must be from 0 to 3, since PMI_SIZE is 4");
  EXPECT_EQ(failure({{"TUTTI_RANK", "0"}, {"RANK", "0"}, {"WORLD_SIZE", "1"}}),
            "TUTTI_RANK is set, but TUTTI_RANKS is not: set both or unset TUTTI_RANK to run one rank");
  for (const std::string ranks : {"65537", "99999999999"})
    EXPECT_EQ(failure({{"TUTTI_RANK", "0"}, {"TUTTI_RANKS", ranks}}),
              "TUTTI_RANKS is \"" + ranks + "\", but must be a whole number from 1 to 65536");
  EXPECT_EQ(failure({{"TUTTI_RANK", "0"}, {"TUTTI_RANKS", "2"}, {"TUTTI_ROOT", "host"}}),
            "TUTTI_ROOT is \"host\", but must be host:port");
  EXPECT_EQ(failure({{"TUTTI_RANK", "0"}, {"TUTTI_RANKS", "2"}, {"TUTTI_ROOT", "host:99999"}}),
            "the port of TUTTI_ROOT is \"99999\", but must be a whole number from 1 to 65535");
}

TEST(Slurm, FindsFirstHost_OfCompressedList) {
  const auto first = [](const char* list) { return first_host(list).value_or("none"); };
  EXPECT_EQ(first("node[01-04,07],gpu-a"), "node01");
  EXPECT_EQ(first("gpu-a,node[01-04]"), "gpu-a");
  EXPECT_EQ(first("gpu-a"), "gpu-a");
  EXPECT_EQ(first("n[7]"), "n7");
  EXPECT_EQ(first("n[007,009-012]-ib"), "n007-ib");
  EXPECT_EQ(first("rack[0-1]node[03-04],x"), "rack0node03");
  for (const char* malformed : {"", ",a", "n[", "n[]", "n]1", "n[-3]", "n[01-02"}) EXPECT_EQ(first(malformed), "none");
}

TEST(Launcher, Fails_WhenVariableIsMissing) {
  EXPECT_EQ(failure({{"RANK", "0"}}),
            "RANK is set, but WORLD_SIZE is not: set both, as torchrun does, or unset RANK to run one rank");
  EXPECT_EQ(failure({{"WORLD_SIZE", "2"}}),
            "WORLD_SIZE is set, but RANK is not: set both, as torchrun does, or unset WORLD_SIZE to run one rank");
  EXPECT_NE(failure({{"OMPI_COMM_WORLD_RANK", "0"}}).find("but OMPI_COMM_WORLD_SIZE is not"), std::string::npos);
  EXPECT_NE(failure({{"PMI_SIZE", "2"}}).find("but PMI_RANK is not"), std::string::npos);
  EXPECT_EQ(failure({{"TUTTI_ROOT", "host:4711"}}).find("TUTTI_ROOT is set, but nothing gives this process a rank"),
            0U);
}

TEST(Launcher, UsesCompleteSet_WhenAnotherIsPartial) {
  const LaunchedRank launched = found({{"RANK", "0"}, {"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}});
  EXPECT_EQ(launched.rank, 1U);
}

// In a Slurm allocation, programs that srun did not start run alone, with a warning.
TEST(Launcher, WarnsAndRunsAlone_WhenSlurmVariablesArePartial) {
  static std::string lines;
  for (const char* only : {"SLURM_NTASKS", "SLURM_PROCID"}) {
    lines.clear();
    set_log_sink([](std::string_view line) { lines += line; });
    EXPECT_EQ(found({{only, "2"}}).ranks, 1U);
    set_log_sink(nullptr);
    EXPECT_NE(lines.find(std::string(only) + " is set, but SLURM_"), std::string::npos) << lines;
    EXPECT_NE(lines.find("running as one rank; start several with srun"), std::string::npos) << lines;
  }
}

}  // namespace
}  // namespace tutti::test
