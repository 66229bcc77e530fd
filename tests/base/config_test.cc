// Parsing of environment variables, and warnings about invalid ones.
#include "src/base/config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "src/base/clock.h"

namespace tutti::test {
namespace {

ReadConfig read(std::map<std::string, std::string> variables) { return read_config(Environment(std::move(variables))); }

TEST(Config, UsesDefaultsOfTable) {
  const ReadConfig nothing = read({});
  std::map<std::string, std::string> defaults;
  for (const Variable& variable : variables()) defaults[variable.name] = variable.default_text;
  const ReadConfig all = read(defaults);
  EXPECT_TRUE(all.warnings.empty());
  EXPECT_EQ(all.config.timeout_ms, nothing.config.timeout_ms);
  EXPECT_EQ(all.config.init_timeout_ms, nothing.config.init_timeout_ms);
  EXPECT_EQ(all.config.timeout_scale, nothing.config.timeout_scale);
  EXPECT_EQ(all.config.log, nothing.config.log);
  EXPECT_EQ(all.config.channels, nothing.config.channels);
  EXPECT_EQ(all.config.verify, nothing.config.verify);
  EXPECT_EQ(all.config.p2p_level, nothing.config.p2p_level);
  EXPECT_EQ(all.config.gpudirect, nothing.config.gpudirect);
  EXPECT_EQ(all.config.ib_gid_index, nothing.config.ib_gid_index);
  EXPECT_EQ(all.config.ib_traffic_class, nothing.config.ib_traffic_class);
  EXPECT_EQ(all.config.ib_timeout, nothing.config.ib_timeout);
  EXPECT_EQ(all.config.ib_retry_count, nothing.config.ib_retry_count);
  EXPECT_EQ(all.config.ib_queue_pairs, nothing.config.ib_queue_pairs);
}

TEST(Config, ListsEveryVariableWithItsSource) {
  const ReadConfig config = read({{"TUTTI_TIMEOUT_MS", "5000"}, {"NCCL_DEBUG", "INFO"}});
  ASSERT_EQ(config.settings.size(), variables().size());
  const auto source_of = [&](std::string_view name) {
    return std::find_if(config.settings.begin(), config.settings.end(),
                        [&](const Setting& s) { return s.variable->name == name; })
        ->source;
  };
  EXPECT_EQ(source_of("TUTTI_TIMEOUT_MS"), "TUTTI_TIMEOUT_MS");
  EXPECT_EQ(source_of("TUTTI_LOG"), "NCCL_DEBUG");
  EXPECT_EQ(source_of("TUTTI_VERIFY"), "default");
  EXPECT_EQ(config.config.timeout_ms, 5000);
  EXPECT_EQ(config.config.log, LogLevel::info);
}

TEST(Config, DescribesEveryVariableInOneLine) {
  std::vector<std::string> groups;
  for (const Variable& variable : variables()) {
    const std::string text = variable.description;
    EXPECT_GE(text.size(), 15U) << variable.name;
    EXPECT_LE(text.size(), 230U) << variable.name;  // Two lines of a listing, three at most.
    EXPECT_EQ(text.find('\n'), std::string::npos) << variable.name;
    EXPECT_NE(text.back(), '.') << variable.name;
    if (groups.empty() || groups.back() != variable.group) groups.emplace_back(variable.group);
  }
  std::sort(groups.begin(), groups.end());
  EXPECT_EQ(std::adjacent_find(groups.begin(), groups.end()), groups.end()) << "a group is in two places";
  EXPECT_GE(groups.size(), 5U);
}

TEST(Config, PrefersTuttiVariableOverNccl) {
  EXPECT_EQ(read({{"TUTTI_SOCKET_IFNAME", "eth"}, {"NCCL_SOCKET_IFNAME", "ib"}}).config.socket_ifname, "eth");
}

TEST(Config, ParsesTuneModes) {
  EXPECT_EQ(read({}).config.tune, Tune::off);
  EXPECT_EQ(read({{"TUTTI_MAX_RELATIVE_ERROR", "0.125"}}).config.max_relative_error, 0.125);
  for (const char* bound : {"-0.1", "1", "nan", "1%", "a tenth"})
    EXPECT_EQ(read({{"TUTTI_MAX_RELATIVE_ERROR", bound}}).config.refused.size(), 1U) << bound;
  EXPECT_EQ(read({{"TUTTI_TUNE", "0"}}).config.tune, Tune::off);
  EXPECT_EQ(read({{"TUTTI_TUNE", "exact"}}).config.tune, Tune::exact);
  EXPECT_EQ(read({{"TUTTI_TUNE", "1"}}).config.tune, Tune::all);
  EXPECT_FALSE(read({}).config.deterministic);
  EXPECT_TRUE(read({{"TUTTI_DETERMINISTIC", "1"}}).config.deterministic);
  EXPECT_EQ(read({{"TUTTI_TUNE_FILE", "/x"}}).config.tune_file, "/x");
}

TEST(Config, ParsesGpudirect_FromNcclNetGdrLevel) {
  EXPECT_EQ(read({}).config.gpudirect, GpuDirect::automatic);
  EXPECT_EQ(read({{"TUTTI_GPUDIRECT", "on"}}).config.gpudirect, GpuDirect::on);
  EXPECT_EQ(read({{"TUTTI_GPUDIRECT", "off"}}).config.gpudirect, GpuDirect::off);
  EXPECT_EQ(read({{"NCCL_NET_GDR_LEVEL", "LOC"}}).config.gpudirect, GpuDirect::off);
  EXPECT_EQ(read({{"NCCL_NET_GDR_LEVEL", "0"}}).config.gpudirect, GpuDirect::off);
  EXPECT_EQ(read({{"NCCL_NET_GDR_LEVEL", "SYS"}}).config.gpudirect, GpuDirect::automatic);
  EXPECT_EQ(read({{"TUTTI_GPUDIRECT", "auto"}, {"NCCL_NET_GDR_LEVEL", "LOC"}}).config.gpudirect, GpuDirect::automatic);
  EXPECT_TRUE(read({{"NCCL_NET_GDR_LEVEL", "LOC"}}).warnings.empty());
  EXPECT_EQ(read({{"TUTTI_GPUDIRECT", "1"}}).config.refused.size(), 1U);
}

TEST(Config, ParsesP2pLevel_FromNcclNames) {
  EXPECT_EQ(read({}).config.p2p_level, P2pLevel::phb);
  EXPECT_EQ(read({{"NCCL_P2P_LEVEL", "NVL"}}).config.p2p_level, P2pLevel::nvl);
  EXPECT_EQ(read({{"TUTTI_P2P_LEVEL", "SYS"}, {"NCCL_P2P_LEVEL", "NVL"}}).config.p2p_level, P2pLevel::sys);
  EXPECT_EQ(read({{"NCCL_P2P_LEVEL", "2"}}).config.p2p_level, P2pLevel::pxb);
  EXPECT_EQ(read({{"NCCL_P2P_LEVEL", "9"}}).config.p2p_level, P2pLevel::sys);
  EXPECT_TRUE(read({{"NCCL_P2P_DISABLE", "1"}}).config.p2p_disabled);
  const ReadConfig wrong = read({{"TUTTI_P2P_LEVEL", "NEAR"}});
  EXPECT_EQ(wrong.config.p2p_level, P2pLevel::phb);
  EXPECT_EQ(wrong.config.refused.size(), 1U);
}

TEST(Config, ParsesRdmaSettings_WithinDeviceLimits) {
  const ReadConfig ours = read({{"NCCL_IB_HCA", "=mlx5_0:1"},
                                {"TUTTI_IB_GID_INDEX", "3"},
                                {"NCCL_IB_GID_INDEX", "1"},
                                {"NCCL_IB_TC", "106"},
                                {"NCCL_IB_TIMEOUT", "31"},
                                {"NCCL_IB_RETRY_CNT", "0"},
                                {"NCCL_IB_QPS_PER_CONNECTION", "8"}});
  EXPECT_TRUE(ours.warnings.empty());
  EXPECT_EQ(ours.config.ib_hca, "=mlx5_0:1");
  EXPECT_EQ(ours.config.ib_gid_index, 3);
  EXPECT_EQ(ours.config.ib_traffic_class, 106U);
  EXPECT_EQ(ours.config.ib_timeout, 31U);
  EXPECT_EQ(ours.config.ib_retry_count, 0U);
  EXPECT_EQ(ours.config.ib_queue_pairs, 8U);
  const ReadConfig wrong = read({{"TUTTI_IB_GID_INDEX", "-2"},
                                 {"TUTTI_IB_TC", "256"},
                                 {"TUTTI_IB_TIMEOUT", "32"},
                                 {"TUTTI_IB_RETRY_CNT", "8"},
                                 {"TUTTI_IB_QPS_PER_CONNECTION", "0"}});
  EXPECT_EQ(wrong.config.refused.size(), 5U);
  EXPECT_EQ(wrong.config.ib_gid_index, -1);
  EXPECT_EQ(wrong.config.ib_traffic_class, 0U);
  EXPECT_EQ(wrong.config.ib_timeout, 17U);
  EXPECT_EQ(wrong.config.ib_retry_count, 6U);
  EXPECT_EQ(wrong.config.ib_queue_pairs, 2U);
}

TEST(Config, ScalesTimeouts) {
  const ReadConfig scaled = read({{"TUTTI_TIMEOUT_SCALE", "2.5"}, {"TUTTI_TIMEOUT_MS", "1000"}});
  EXPECT_EQ(scaled.config.timeout_ms, 2500);
  EXPECT_EQ(scaled.config.init_timeout_ms, 300'000);
}

TEST(Config, DisablesTimeout_WhenZeroOrMinusOne) {
  for (const char* none : {"0", "-1"}) {
    const ReadConfig config = read({{"TUTTI_TIMEOUT_MS", none}, {"TUTTI_INIT_TIMEOUT_MS", none}});
    EXPECT_TRUE(config.warnings.empty()) << none;
    EXPECT_EQ(config.config.timeout_ms, 0) << none;
    EXPECT_EQ(config.config.init_timeout_ms, 0) << none;
  }
}

TEST(Config, ClampsScaledTimeout) {
  const auto scaled = [](const char* scale, const char* timeout) {
    return read({{"TUTTI_TIMEOUT_SCALE", scale}, {"TUTTI_TIMEOUT_MS", timeout}}).config.timeout_ms;
  };
  EXPECT_EQ(scaled("0.0001", "100"), 1);
  EXPECT_EQ(scaled("1e300", "100"), kMaxTimeoutMs);
  EXPECT_EQ(scaled("7", "0"), 0);
}

TEST(Deadline, IsInfinite_WhenClockWouldOverflow) {
  for (const std::int64_t timeout_ms : {std::numeric_limits<std::int64_t>::max(), std::int64_t{9'223'372'036'854}}) {
    EXPECT_FALSE(Deadline::after_ms(timeout_ms).passed()) << timeout_ms;
  }
  EXPECT_FALSE(Deadline::after_ms(kMaxTimeoutMs).passed());
  EXPECT_NE(Deadline::after_ms(kMaxTimeoutMs).at_ns, Deadline().at_ns);
}

TEST(Config, SuggestsNearestVariable_WhenOneIsClose) {
  const ReadConfig config = read({{"TUTTI_TIMEOUTS_MS", "1"}, {"TUTTI_ALGO", "ring"}, {"PATH", "/bin"}});
  EXPECT_EQ(config.warnings,
            (std::vector<std::string>{"unknown variable TUTTI_ALGO: did you mean TUTTI_ALGORITHM?",
                                      "unknown variable TUTTI_TIMEOUTS_MS: did you mean TUTTI_TIMEOUT_MS?"}));
}

TEST(Config, SuggestsVariableOfSameNameInNccl) {
  const ReadConfig config = read({{"TUTTI_MNNVL_ENABLE", "0"}});
  EXPECT_EQ(config.warnings,
            (std::vector<std::string>{"unknown variable TUTTI_MNNVL_ENABLE: did you mean TUTTI_MNNVL?"}));
}

TEST(Config, RejectsUnknownCheck) {
  EXPECT_EQ(read({{"TUTTI_CHECK", "wire"}}).config.refused.size(), 1U);
  const ReadConfig read_mac = read({{"TUTTI_CHECK", "mac"}});
  EXPECT_TRUE(read_mac.config.refused.empty());
  EXPECT_TRUE(read_mac.config.check_tcp);
}

TEST(Config, AcceptsProtocolInAnyCase) {
  EXPECT_EQ(read({{"TUTTI_PROTOCOL", "simple"}}).config.protocol, "Simple");
  EXPECT_EQ(read({{"TUTTI_PROTOCOL", "ll128"}}).config.protocol, "LL128");
  EXPECT_EQ(read({{"TUTTI_PROTOCOL", "llx"}}).config.protocol, "llx");  // Rejected when a communicator is created.
}

TEST(Config, SuggestsNoVariable_WhenNoneIsClose) {
  EXPECT_EQ(read({{"TUTTI_FOO", "1"}}).warnings,
            std::vector<std::string>{"unknown variable TUTTI_FOO: `tutti doctor` lists all variables"});
}

TEST(Config, AcceptsNcclsLogVariables) {
  EXPECT_EQ(read({{"NCCL_DEBUG", "version"}}).config.log, LogLevel::warn);
  EXPECT_EQ(read({{"NCCL_DEBUG", "TRACE"}}).config.log, LogLevel::trace);
  EXPECT_EQ(read({{"NCCL_DEBUG_FILE", "/x/%h.%p"}}).config.log_file, "/x/%h.%p");
  EXPECT_EQ(read({{"NCCL_DEBUG_FILE", "/x"}, {"TUTTI_LOG_FILE", "/y"}}).config.log_file, "/y");
}

TEST(Config, NotesNcclsVariables_WhenTheyHaveNoEffect) {
  const ReadConfig config = read({{"NCCL_DEBUG_SUBSYS", "INIT,NET"},
                                  {"NCCL_NTHREADS", "256"},
                                  {"NCCL_BUFFSIZE", "1"},
                                  {"NCCL_ALGO", "Ring"},
                                  {"NCCL_COMM_BLOCKING", "1"},
                                  {"NCCL_MAX_CTAS", "8"},
                                  {"NCCL_NET", "IB"}});
  EXPECT_TRUE(config.warnings.empty());
  EXPECT_EQ(config.notes, (std::vector<std::string>{
                              "NCCL_DEBUG_SUBSYS=INIT,NET has no effect: log lines have no subsystems; TUTTI_LOG or "
                              "NCCL_DEBUG sets the level",
                              "variables of NCCL that have no effect in Tutti: NCCL_BUFFSIZE, NCCL_NTHREADS"}));
  EXPECT_EQ(read({{"NCCL_NET", "AWS Libfabric"}}).notes,
            std::vector<std::string>{"variables of NCCL that have no effect in Tutti: NCCL_NET"});
  EXPECT_EQ(read({{"NCCL_NET_PLUGIN", "ofi"}}).notes,
            std::vector<std::string>{"NCCL_NET_PLUGIN=ofi has an effect only with the transport net_plugin, as in "
                                     "TUTTI_TRANSPORT=shm+net_plugin"});
  for (const char* transport : {"net_plugin", "shm+net_plugin"})
    EXPECT_TRUE(read({{"NCCL_NET_PLUGIN", "ofi"}, {"TUTTI_TRANSPORT", transport}}).notes.empty());
  EXPECT_TRUE(read({{"NCCL_NET_PLUGIN", "None"}}).notes.empty());
}

TEST(Config, SuggestsNoName_WhenNoneIsSimilar) {
  EXPECT_EQ(read({{"TUTTI_FOO", "1"}}).warnings,
            (std::vector<std::string>{"unknown variable TUTTI_FOO: `tutti doctor` lists all variables"}));
  EXPECT_EQ(read({{"TUTTI_TRANPSORT", "tcp"}}).warnings,
            (std::vector<std::string>{"unknown variable TUTTI_TRANPSORT: did you mean TUTTI_TRANSPORT?"}));
}

TEST(Config, RefusesInvalidValue) {
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"TUTTI_TIMEOUT_MS", "ten"},
                                                        {"TUTTI_TIMEOUT_MS", "-2"},
                                                        {"TUTTI_TIMEOUT_MS", "9223372036854775807"},
                                                        {"TUTTI_TIMEOUT_SCALE", "nan"},
                                                        {"TUTTI_TIMEOUT_SCALE", "0"},
                                                        {"TUTTI_LOG", "loud"},
                                                        {"TUTTI_CHANNELS", "4 "},
                                                        {"TUTTI_TUNE", "some"},
                                                        {"TUTTI_VERIFY", "yes"}}) {
    const ReadConfig config = read({{name, value}});
    const std::vector<std::string>& errors = config.config.refused;
    ASSERT_EQ(errors.size(), 1U) << name;
    EXPECT_EQ(errors[0].find(name + " is \"" + value + "\", but must be "), 0U) << errors[0];
    EXPECT_TRUE(config.warnings.empty()) << name;
  }
  EXPECT_EQ(read({{"TUTTI_TIMEOUT_MS", "ten"}, {"TUTTI_VERIFY", "yes"}}).config.refused.size(), 2U);
  EXPECT_EQ(read({{"TUTTI_TIMEOUT_MS", "ten"}}).config.refused[0],
            "TUTTI_TIMEOUT_MS is \"ten\", but must be a whole number of milliseconds, at most a century; 0 or -1 is no "
            "timeout");
}

TEST(Config, ParsesNcclAlgorithmAndProtocol) {
  const auto taken = [](const char* algorithm, const char* protocol) {
    const Config config = read({{"NCCL_ALGO", algorithm}, {"NCCL_PROTO", protocol}}).config;
    return config.algorithm + " " + config.protocol;
  };
  EXPECT_EQ(taken("Ring", "Simple"), "ring Simple");
  EXPECT_EQ(taken("tree", "LL"), "double_binary_tree LL");
  EXPECT_EQ(taken("NVLS", ""), "switch_staged ");
  EXPECT_EQ(taken("allreduce:nvls", ""), " ");
  EXPECT_EQ(taken("Ring,Tree", "LL,LL128,Simple"), " ");
  EXPECT_EQ(taken("None,Tree", "LL128"), "double_binary_tree LL128");
  EXPECT_EQ(taken("allreduce:tree", "ll"), "double_binary_tree LL");
  EXPECT_EQ(taken("broadcast:ring;allreduce:tree", "ll"), "double_binary_tree LL");
  EXPECT_EQ(taken("^tree", "^LL"), " ");
  EXPECT_EQ(read({{"TUTTI_ALGORITHM", "two_shot"}, {"NCCL_ALGO", "Ring"}}).config.algorithm, "two_shot");
}

TEST(Config, AcceptsNcclsSwitchForSums) {
  EXPECT_TRUE(read({}).config.nvls);
  EXPECT_TRUE(read({{"NCCL_NVLS_ENABLE", "2"}}).config.nvls);
  EXPECT_FALSE(read({{"NCCL_NVLS_ENABLE", "0"}}).config.nvls);
  EXPECT_TRUE(read({{"NCCL_NVLS_ENABLE", "0"}, {"TUTTI_NVLS", "1"}}).config.nvls);
}

TEST(Config, RecordsWhetherNcclNameForces) {
  const Config nccls = read({{"NCCL_ALGO", "Ring"}, {"NCCL_PROTO", "LL"}}).config;
  EXPECT_TRUE(nccls.algorithm_is_from_nccl && nccls.protocol_is_from_nccl);
  const Config ours = read({{"NCCL_ALGO", "Ring"}, {"TUTTI_ALGORITHM", "ring"}, {"TUTTI_PROTOCOL", "Simple"}}).config;
  EXPECT_FALSE(ours.algorithm_is_from_nccl || ours.protocol_is_from_nccl);
}

TEST(Config, WarnsOfUnsupportedNcclValues) {
  const auto warning = [](const char* name, const char* value) {
    const std::vector<std::string> warnings = read({{name, value}}).warnings;
    return warnings.size() == 1 ? warnings[0] : std::to_string(warnings.size()) + " warnings";
  };
  EXPECT_EQ(warning("NCCL_ALGO", "NVLSTree"), "0 warnings");
  EXPECT_EQ(warning("NCCL_ALGO", "CollnetChain"),
            "CollnetChain of NCCL_ALGO has no effect: reduction in network switches is not supported");
  EXPECT_EQ(warning("NCCL_ALGO", "NVLS"), "0 warnings");
  EXPECT_EQ(warning("NCCL_ALGO", "allreduce:nvls"),
            "allreduce:nvls of NCCL_ALGO ignored: a name is forced for all collectives that have it");
  EXPECT_EQ(warning("NCCL_ALGO", "^Tree"), "NCCL_ALGO=^Tree ignored: exclusion lists are not supported");
  EXPECT_EQ(warning("NCCL_PROTO", "LL,LL128,Simple"),
            "NCCL_PROTO=LL,LL128,Simple ignored: lists are not supported, only one name can be forced");
  EXPECT_EQ(warning("NCCL_ALGO", "broadcast:ring"),
            "broadcast:ring of NCCL_ALGO ignored: a name is forced for all collectives that have it");
  EXPECT_EQ(warning("NCCL_PROTO", "LL256"), "LL256 of NCCL_PROTO has no effect: valid names are ll, ll128, simple");
  EXPECT_EQ(warning("NCCL_ALGO", "Ring"), "0 warnings");
}

}  // namespace
}  // namespace tutti::test
