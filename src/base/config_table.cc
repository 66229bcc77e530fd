#include "src/base/config_table.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <utility>

#include "src/base/nccl_names.h"
#include "src/base/protocol.h"
#include "src/base/read_number.h"

namespace tutti {
namespace {

bool parse(const std::string& text, std::string& kept) {
  kept = text;
  return true;
}

bool parse_time(const std::string& text, std::int64_t& milliseconds) {
  std::int64_t parsed = 0;
  if (!read_number(text, parsed) || parsed < -1 || parsed > kMaxTimeoutMs) return false;
  // -1 disables the timeout, as in options, where 0 selects the default.
  milliseconds = std::max<std::int64_t>(parsed, 0);
  return true;
}

bool parse_switch(const std::string& text, bool& on) {
  if (text != "0" && text != "1") return false;
  on = text == "1";
  return true;
}

template <typename Number>
bool parse_within(const std::string& text, Number min, Number max, Number& number) {
  Number parsed{};
  if (!read_number(text, parsed) || !(parsed >= min && parsed <= max)) return false;  // Also rejects NaN.
  number = parsed;
  return true;
}

template <typename Value>
bool parse_word(const std::string& text, std::initializer_list<std::pair<const char*, Value>> words, Value& value) {
  const auto* const word =
      std::find_if(words.begin(), words.end(), [&](const auto& known) { return text == known.first; });
  if (word != words.end()) value = word->second;
  return word != words.end();
}

// A switch for which NCCL also has 2, "where possible".
bool parse_nccl_switch(const std::string& text, bool& value) {
  return parse_word(text, {{"0", false}, {"1", true}, {"2", true}}, value);
}

// Accepts variables that other code parses: the launcher detection, or libnccl.so.2.
bool is_parsed_elsewhere(Config&, const std::string&) { return true; }

constexpr std::array kEntries = {
    ConfigEntry{{"TUTTI_RANK", nullptr, "", "launch",
                 "rank of this process, from 0; for launchers other than mpirun, srun and torchrun"},
                "a number",
                is_parsed_elsewhere},
    ConfigEntry{{"TUTTI_RANKS", nullptr, "", "launch", "number of ranks; needed with TUTTI_RANK"},
                "a number",
                is_parsed_elsewhere},
    ConfigEntry{{"TUTTI_ROOT", nullptr, "", "launch",
                 "host:port at which rank 0 accepts the other ranks; unset: a process of this host started all ranks, "
                 "or torchrun or Slurm names the host of rank 0 (must match on all ranks)"},
                "host:port",
                is_parsed_elsewhere},
    ConfigEntry{{"TUTTI_INIT_TIMEOUT_MS", nullptr, "120000", "launch",
                 "timeout for all ranks to join, in ms; 0 or -1: none, which is the default of libnccl.so.2"},
                "a whole number of milliseconds, at most a century; 0 or -1 is no timeout",
                [](Config& config, const std::string& text) { return parse_time(text, config.init_timeout_ms); }},
    ConfigEntry{{"TUTTI_TIMEOUT_MS", nullptr, "600000", "errors and logging",
                 "timeout of an operation, in ms; 0 or -1: none, which is the default of libnccl.so.2. On host memory, "
                 "a rank that waits for 30 s or a quarter of this (5 s in finalize and destroy) logs a warning"},
                "a whole number of milliseconds, at most a century; 0 or -1 is no timeout",
                [](Config& config, const std::string& text) { return parse_time(text, config.timeout_ms); }},
    ConfigEntry{
        {"TUTTI_TIMEOUT_SCALE", nullptr, "1", "errors and logging",
         "factor on TUTTI_TIMEOUT_MS, TUTTI_INIT_TIMEOUT_MS and their defaults, above 0; timeouts that a program "
         "passes are not scaled"},
        "a number above 0",
        [](Config& config, const std::string& text) {
          using Limits = std::numeric_limits<double>;
          return parse_within(text, Limits::denorm_min(), Limits::max(), config.timeout_scale);
        }},
    ConfigEntry{
        {"TUTTI_LOG", "NCCL_DEBUG", "warn", "errors and logging",
         "log level: none, warn, info (also settings and transports of each communicator) or trace (also the algorithm "
         "of each new kind of call); of NCCL's levels, VERSION and ABORT are warn"},
        "none, warn, info or trace",
        [](Config& config, const std::string& text) { return parse_level(text, config.log); }},
    ConfigEntry{
        {"TUTTI_LOG_FILE", "NCCL_DEBUG_FILE", "", "errors and logging",
         "file to which log lines are appended instead of standard error; %h is the host name, %p the process id"},
        "a path",
        [](Config& config, const std::string& text) { return parse(text, config.log_file); }},
    ConfigEntry{{"TUTTI_VERIFY", nullptr, "0", "errors and logging",
                 "proof of each plan before its first use: 0 (plans of at most 16 ranks) or 1 (all plans)"},
                "0 or 1",
                [](Config& config, const std::string& text) { return parse_switch(text, config.verify); }},
    ConfigEntry{
        {"TUTTI_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "", "network",
         "network interfaces, a list: prefixes (eth,ib), exact names (=eth0,eth1; ranks of a host share them) or "
         "exclusions (^docker)"},
        "a list of interfaces",
        [](Config& config, const std::string& text) { return parse(text, config.socket_ifname); }},
    ConfigEntry{
        {"TUTTI_PROBE", nullptr, "1", "network",
         "bandwidth measurement of TCP links between hosts when ranks join, for the choice of algorithms: 1 or 0 (0 "
         "on any rank disables it on all)"},
        "0 or 1",
        [](Config& config, const std::string& text) { return parse_switch(text, config.probe); }},
    ConfigEntry{{"TUTTI_TRANSPORT", nullptr, "", "transports",
                 "transport: shm (one host only), tcp, ucx, verbs (RDMA) or net_plugin, or with shm within a host "
                 "shm+tcp, shm+ucx, shm+verbs or shm+net_plugin; unset: shm+verbs if all ranks have it, else shm+tcp "
                 "(must match on all ranks)"},
                "a name",
                [](Config& config, const std::string& text) { return parse(text, config.transport); }},
    ConfigEntry{{"TUTTI_NET_PLUGIN", "NCCL_NET_PLUGIN", "", "transports",
                 "network plugins of NCCL for the transport net_plugin, a list of names or paths: the first that works "
                 "is used; none: no plugin; unset: libnccl-net.so. The variable alone does not select the transport"},
                "a list of names or paths",
                [](Config& config, const std::string& text) { return parse(text, config.net_plugin); }},
    ConfigEntry{
        {"TUTTI_IB_DISABLE", "NCCL_IB_DISABLE", "0", "transports",
         "RDMA between hosts: 0 (allowed) or 1 (only if TUTTI_TRANSPORT or an option of tutti.h names verbs; 1 on "
         "any rank holds for all)"},
        "0 or 1",
        [](Config& config, const std::string& text) { return parse_switch(text, config.ib_disabled); }},
    ConfigEntry{
        {"TUTTI_IB_HCA", "NCCL_IB_HCA", "", "transports",
         "RDMA devices, a list with optional ports: prefixes (mlx5,rxe0:1), exact names (=mlx5_0:1) or exclusions "
         "(^mlx5_3, ^=mlx5_3)"},
        "a list of devices",
        [](Config& config, const std::string& text) { return parse(text, config.ib_hca); }},
    ConfigEntry{
        {"TUTTI_IB_GID_INDEX", "NCCL_IB_GID_INDEX", "-1", "transports",
         "index into the GID table of an RDMA port, 0 to 255; -1: RoCE v2 over IPv4 if the table has it"},
        "a whole number, -1 to 255",
        [](Config& config, const std::string& text) { return parse_within(text, -1, 255, config.ib_gid_index); }},
    ConfigEntry{
        {"TUTTI_IB_TC", "NCCL_IB_TC", "0", "transports", "traffic class of RDMA packets, 0 to 255"},
        "a whole number, 0 to 255",
        [](Config& config, const std::string& text) { return parse_within(text, 0U, 255U, config.ib_traffic_class); }},
    ConfigEntry{{"TUTTI_IB_TIMEOUT", "NCCL_IB_TIMEOUT", "17", "transports",
                 "RDMA retransmission timeout, 1 to 31: 4.096 us * 2^value"},
                "a whole number, 1 to 31",
                [](Config& config, const std::string& text) { return parse_within(text, 1U, 31U, config.ib_timeout); }},
    ConfigEntry{
        {"TUTTI_IB_RETRY_CNT", "NCCL_IB_RETRY_CNT", "6", "transports",
         "number of RDMA retransmissions before a peer counts as dead, 0 to 7; 7 is unlimited on soft-RoCE"},
        "a whole number, 0 to 7",
        [](Config& config, const std::string& text) { return parse_within(text, 0U, 7U, config.ib_retry_count); }},
    ConfigEntry{
        {"TUTTI_IB_QPS_PER_CONNECTION", "NCCL_IB_QPS_PER_CONNECTION", "2", "transports",
         "RDMA queue pairs per pair of ranks and port, 1 to 128; more than 4 count as 4. Messages take turns on them, "
         "so that networks with several paths use more than one"},
        "a whole number, 1 to 128",
        [](Config& config, const std::string& text) { return parse_within(text, 1U, 128U, config.ib_queue_pairs); }},
    ConfigEntry{
        {"TUTTI_SECRET_FILE", nullptr, "", "security",
         "path of a file of mode 0600 with a secret of 16 bytes or more, which a rank needs to join (must match on "
         "all ranks)"},
        "a path",
        [](Config& config, const std::string& text) { return parse(text, config.secret_file); }},
    ConfigEntry{{"TUTTI_ENCRYPT", nullptr, "0", "security",
                 "encryption of TCP traffic between hosts: 0 or 1 (must match on all ranks)"},
                "0 or 1",
                [](Config& config, const std::string& text) { return parse_switch(text, config.encrypt); }},
    ConfigEntry{
        {"TUTTI_CHECK", nullptr, "", "security",
         "integrity check of TCP traffic: mac (a message authentication code per record detects altered data) or unset "
         "(must match on all ranks)"},
        "mac, or nothing",
        [](Config& config, const std::string& text) { return config.check_tcp = text == "mac"; }},
    ConfigEntry{
        {"TUTTI_TOPO_FILE", "NCCL_TOPO_FILE", "", "topology and GPUs",
         "path of a topology of this host that replaces discovery: JSON of `tutti topo --json`, or XML of NCCL or "
         "hwloc"},
        "a path",
        [](Config& config, const std::string& text) { return parse(text, config.topo_file); }},
    ConfigEntry{{"TUTTI_TOPO_DUMP_FILE", "NCCL_TOPO_DUMP_FILE", "", "topology and GPUs",
                 "path to which rank 0 writes the topology of all hosts: JSON if it ends in .json, else NCCL's XML"},
                "a path",
                [](Config& config, const std::string& text) { return parse(text, config.topo_dump_file); }},
    ConfigEntry{
        {"TUTTI_P2P_LEVEL", "NCCL_P2P_LEVEL", "PHB", "topology and GPUs",
         "maximum distance of GPUs that access each other's memory directly: LOC (none do), NVL, PIX, PXB, PHB or "
         "SYS (all do)"},
        "LOC, NVL, PIX, PXB, PHB or SYS",
        [](Config& config, const std::string& text) { return parse_p2p_level(text, config.p2p_level); }},
    ConfigEntry{{"TUTTI_MNNVL", "NCCL_MNNVL_ENABLE", "1", "topology and GPUs",
                 "hosts whose GPUs NVLinks connect, as in an NVL72 rack: 1 (they access each other's GPU memory where "
                 "possible; NCCL's 2 means the same) or 0 on any rank (they use the network)"},
                "0, 1 or 2",
                [](Config& config, const std::string& text) { return parse_nccl_switch(text, config.mnnvl); }},
    ConfigEntry{{"TUTTI_P2P_DISABLE", "NCCL_P2P_DISABLE", "0", "topology and GPUs",
                 "direct access between GPUs: 0 (up to TUTTI_P2P_LEVEL) or 1 (none, like LOC)"},
                "0 or 1",
                [](Config& config, const std::string& text) { return parse_switch(text, config.p2p_disabled); }},
    ConfigEntry{
        {"TUTTI_GPUDIRECT", "NCCL_NET_GDR_LEVEL", "auto", "topology and GPUs",
         "access of network cards to GPU memory: auto (where possible), off (data is staged in host memory) or on "
         "(an error where impossible); NCCL_NET_GDR_LEVEL=LOC is off, its other levels are auto"},
        "auto, off or on, or one of NCCL's LOC, NVL, PIX, PXB, PHB and SYS",
        [](Config& config, const std::string& text) { return parse_gpudirect(text, config.gpudirect); }},
    ConfigEntry{
        {"TUTTI_ALGORITHM", "NCCL_ALGO", "", "algorithms and autotuning",
         "algorithm of all collectives that have it, such as ring or copy_engines; NCCL_ALGO has an effect only if it "
         "names one (tree: double_binary_tree; NVLS: switch_staged, or switch_mapped in windows) (must match on all "
         "ranks)"},
        "a name",
        [](Config& config, const std::string& text) { return parse(text, config.algorithm); },
        algorithm_of_nccl},
    ConfigEntry{
        {"TUTTI_PROTOCOL", "NCCL_PROTO", "", "algorithms and autotuning",
         "protocol of all messages: LL, Simple or, on GPUs, LL128; NCCL_PROTO forces one only "
         "if it names one (must match on all ranks)"},
        "a name",
        [](Config& config, const std::string& text) { return parse(canonical_protocol(text), config.protocol); },
        protocol_of_nccl},
    ConfigEntry{{"TUTTI_CHANNELS", nullptr, "0", "algorithms and autotuning",
                 "number of channels, which run parts of a call in parallel; 0: chosen by the tuner; host memory has 1 "
                 "(must match on all ranks)"},
                "a whole number, 0 or more",
                [](Config& config, const std::string& text) { return read_number(text, config.channels); }},
    ConfigEntry{
        {"TUTTI_TUNER_PLUGIN", "NCCL_TUNER_PLUGIN", "", "algorithms and autotuning",
         "NCCL tuner plugin, version 4 or 5: a path, or NAME for libnccl-tuner-NAME.so; unset or none: no plugin "
         "(must match on all ranks)"},
        "a name or a path",
        [](Config& config, const std::string& text) { return parse(text, config.tuner_plugin); }},
    ConfigEntry{
        {"TUTTI_TUNE", nullptr, "0", "algorithms and autotuning",
         "autotuning of calls on host memory and on GPUs of one host: 0 (off), 1 (all calls) or exact (only calls "
         "whose result has the same bits with any algorithm). Capture CUDA graphs after it has finished (must match "
         "on all ranks)"},
        "0, exact or 1",
        [](Config& config, const std::string& text) {
          return parse_word(text, {{"0", Tune::off}, {"exact", Tune::exact}, {"1", Tune::all}}, config.tune);
        }},
    ConfigEntry{
        {"TUTTI_TUNE_FILE", nullptr, "", "algorithms and autotuning",
         "path at which rank 0 saves autotuning results for later runs on like machines; needs TUTTI_TUNE (set on "
         "all ranks or none)"},
        "a path",
        [](Config& config, const std::string& text) { return parse(text, config.tune_file); }},
    ConfigEntry{
        {"TUTTI_DETERMINISTIC", nullptr, "0", "algorithms and autotuning",
         "choice of algorithms: 0 (measurements may change it) or 1 (TUTTI_PROBE, TUTTI_TUNE and TUTTI_TUNE_FILE "
         "have no effect, and NVSwitches do not add) (must match on all ranks)"},
        "0 or 1",
        [](Config& config, const std::string& text) { return parse_switch(text, config.deterministic); }},
    ConfigEntry{{"TUTTI_NVLS", "NCCL_NVLS_ENABLE", "1", "algorithms and autotuning",
                 "sums and multicast by the NVSwitches between GPUs of a host: 1 (sums where they add the type of the "
                 "elements; NCCL's 2 means the same) or 0 on any rank (never)"},
                "0, 1 or 2",
                [](Config& config, const std::string& text) { return parse_nccl_switch(text, config.nvls); }},
    ConfigEntry{{"TUTTI_WAIT", nullptr, "auto", "waiting",
                 "waits for peers on host memory: auto (spin or yield briefly, then sleep), spin or sleep"},
                "auto, spin or sleep",
                [](Config& config, const std::string& text) {
                  return parse_word(
                      text, {{"auto", WaitMode::automatic}, {"spin", WaitMode::spin}, {"sleep", WaitMode::sleep}},
                      config.wait);
                }},
    ConfigEntry{
        {"TUTTI_COMPRESS", nullptr, "raw", "compression",
         "compression of fp32, fp16 and bf16 messages: raw (none), bf16, fp16, int8, int8_b32, int6, int4, fp8_e4m3, "
         "fp8_e5m2 or mxfp8 (must match on all ranks)"},
        "a name",
        [](Config& config, const std::string& text) { return parse(text, config.compression); }},
    ConfigEntry{
        {"TUTTI_MAX_RELATIVE_ERROR", nullptr, "0", "compression",
         "bound on the relative error of results, below 1, instead of TUTTI_COMPRESS: the fastest compression within "
         "it "
         "is used; 0: no bound (must match on all ranks)"},
        "0, or a number above 0 and below 1",
        [](Config& config, const std::string& text) {
          return parse_within(text, 0.0, 1 - 0x1p-53, config.max_relative_error);
        }},
    ConfigEntry{{"TUTTI_COMPRESS_ROUNDING", nullptr, "nearest", "compression",
                 "rounding of compressed values: nearest or stochastic (the mean of many results is unbiased)"},
                "nearest or stochastic",
                [](Config& config, const std::string& text) {
                  config.compression_stochastic = text == "stochastic";
                  return config.compression_stochastic || text == "nearest";
                }},
    ConfigEntry{{"TUTTI_COMPRESS_SEED", nullptr, "0", "compression", "seed of stochastic rounding, a whole number"},
                "a whole number, 0 or more",
                [](Config& config, const std::string& text) { return read_number(text, config.compression_seed); }},
    ConfigEntry{{"TUTTI_NCCL_MEMORY", nullptr, "cuda", "libnccl.so.2",
                 "memory of the buffers that programs pass to libnccl.so.2: cuda or host"},
                "cuda or host",
                is_parsed_elsewhere},
    ConfigEntry{{"TUTTI_NCCL_FALLBACK", nullptr, "", "libnccl.so.2",
                 "libnccl.so.2 of NVIDIA, 2.28.9 or later, that runs functions of NCCL which Tutti lacks; unset: none "
                 "(must be set on all ranks or on none)"},
                "a path",
                is_parsed_elsewhere},
    ConfigEntry{{"TUTTI_NCCL_COMPRESS", nullptr, "", "libnccl.so.2",
                 "compression of the calls that the TUTTI_NCCL_COMPRESS_ variables below select, with the values of "
                 "TUTTI_COMPRESS, "
                 "which it overrides; unset: none (must match on all ranks)"},
                "a name",
                is_parsed_elsewhere},
    ConfigEntry{
        {"TUTTI_NCCL_COMPRESS_MAX_RELATIVE_ERROR", nullptr, "0", "libnccl.so.2",
         "bound on the relative error of these calls instead of TUTTI_NCCL_COMPRESS, like TUTTI_MAX_RELATIVE_ERROR; 0: "
         "none (must match on all ranks)"},
        "0, or a number above 0 and below 1",
        is_parsed_elsewhere},
    ConfigEntry{{"TUTTI_NCCL_COMPRESS_MIN_BYTES", nullptr, "262144", "libnccl.so.2",
                 "minimum size of the calls that are compressed, in bytes of a rank's larger buffer"},
                "a whole number of bytes",
                is_parsed_elsewhere},
    ConfigEntry{{"TUTTI_NCCL_COMPRESS_TYPES", nullptr, "float32,float16,bfloat16", "libnccl.so.2",
                 "element types that are compressed, a list of float32, float16 and bfloat16"},
                "a list of float32, float16, bfloat16",
                is_parsed_elsewhere},
    ConfigEntry{
        {"TUTTI_NCCL_COMPRESS_COLLECTIVES", nullptr, "all_reduce,reduce_scatter,reduce", "libnccl.so.2",
         "collectives that are compressed, a list of all_reduce, reduce_scatter and reduce (sums and averages only), "
         "all_gather, broadcast, gather, scatter and all_to_all"},
        "a list of collectives",
        is_parsed_elsewhere},
    ConfigEntry{{"TUTTI_NCCL_COMPRESS_COMMS", nullptr, "*", "libnccl.so.2",
                 "communicators whose calls are compressed, a list of patterns of ncclConfig_t's commName: grad*,dp_?"},
                "a list of patterns",
                is_parsed_elsewhere},
    ConfigEntry{{"TUTTI_LIBRARY", nullptr, "", "Python",
                 "libtutti.so that the Python package loads; unset: its own, or else the system's"},
                "a path",
                is_parsed_elsewhere},
    ConfigEntry{{"TUTTI_PYTORCH_PATH", nullptr, "", "Python",
                 "implementation of the PyTorch backend; unset: cpp if it was built, else python"},
                "cpp, python",
                is_parsed_elsewhere},
    ConfigEntry{
        {"TUTTI_PYTORCH_REPLACE_GLOO", nullptr, "0", "Python", "1: PyTorch's backend gloo is replaced by Tutti"},
        "0, 1",
        is_parsed_elsewhere},
};

}  // namespace

std::span<const ConfigEntry> config_entries() { return kEntries; }

}  // namespace tutti
