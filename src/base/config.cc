#include "src/base/config.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "src/base/nccl_names.h"
#include "src/base/similar_names.h"

namespace tutti {
namespace {

template <typename Number>
bool parse(const std::string& text, Number& number) {
  Number parsed{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  number = parsed;
  return true;
}

bool parse(const std::string& text, std::string& kept) {
  kept = text;
  return true;
}

bool parse_time(const std::string& text, std::int64_t& milliseconds) {
  std::int64_t parsed = 0;
  if (!parse(text, parsed) || parsed < -1 || parsed > kLongestTimeoutMs) return false;
  milliseconds = std::max<std::int64_t>(parsed, 0);  // -1 is none in options, where 0 is the default.
  return true;
}

bool parse_switch(const std::string& text, bool& on) {
  if (text != "0" && text != "1") return false;
  on = text == "1";
  return true;
}

template <typename Number>
bool parse_within(const std::string& text, Number least, Number most, Number& number) {
  Number parsed{};
  if (!parse(text, parsed) || !(parsed >= least && parsed <= most)) return false;  // No NaN either.
  number = parsed;
  return true;
}

bool parse_tune(const std::string& text, Tune& tune) {
  constexpr std::pair<const char*, Tune> kWords[] = {{"0", Tune::off}, {"exact", Tune::exact}, {"1", Tune::all}};
  for (const auto& [word, meant] : kWords) {
    if (text == word) tune = meant;
    if (text == word) return true;
  }
  return false;
}

// Read by others: the launcher makes sense of its variables beside other launchers', libnccl.so.2 of its own.
bool others(Config&, const std::string&) { return true; }

struct Entry {
  Variable variable;
  const char* wanted;  // Of a value: "must be ...".
  bool (*set)(Config& config, const std::string& text);
  bool insists = false;  // A value that is none is refused, instead of going on without what was meant.
  // Of NCCL's values into ours, where they differ; "" where it has no effect.
  std::string (*translate)(const std::string& text, std::vector<std::string>& warnings) = nullptr;
};

constexpr std::array kEntries = {
    Entry{{"TUTTI_TIMEOUT_MS", nullptr, "600000",
           "longest wait of an operation, in milliseconds; 0 or -1: none. On host memory a rank that has waited for 30 "
           "s (5 s in finalize and destroy), or a quarter of this, logs the rank that it waits for"},
          "a whole number of milliseconds, 1 to a century, or 0 or -1 for none",
          [](Config& config, const std::string& text) { return parse_time(text, config.timeout_ms); }},
    Entry{{"TUTTI_INIT_TIMEOUT_MS", nullptr, "120000",
           "longest wait for all ranks to join, in milliseconds; 0 or -1: none"},
          "a whole number of milliseconds, 1 to a century, or 0 or -1 for none",
          [](Config& config, const std::string& text) { return parse_time(text, config.init_timeout_ms); }},
    Entry{{"TUTTI_TIMEOUT_SCALE", nullptr, "1",
           "factor on TUTTI_TIMEOUT_MS and TUTTI_INIT_TIMEOUT_MS or their defaults, not on what a program passes"},
          "a number above 0",
          [](Config& config, const std::string& text) {
            using Limits = std::numeric_limits<double>;
            return parse_within(text, Limits::denorm_min(), Limits::max(), config.timeout_scale);
          }},
    Entry{{"TUTTI_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "",
           "network interface of the rendezvous, looked for even where ranks of one host meet without: "
           "beginnings (eth,ib), a name (=eth0), or all but some (^docker); of a list that ranks of one host share out "
           "between hosts, all (=eth0,eth1)"},
          "a list of interfaces",
          [](Config& config, const std::string& text) { return parse(text, config.socket_ifname); }},
    Entry{{"TUTTI_SECRET_FILE", nullptr, "",
           "file of mode 0600 with a second secret of 16 bytes or more, the same on all ranks"},
          "a path",
          [](Config& config, const std::string& text) { return parse(text, config.secret_file); }},
    Entry{
        {"TUTTI_LOG", "NCCL_DEBUG", "warn",
         "log level: none, warn (default), info (also settings and transports of each communicator) or trace (also the "
         "algorithm of each new kind of call); of NCCL's levels VERSION is warn"},
        "none, warn, info or trace",
        [](Config& config, const std::string& text) { return parse_level(text, config.log); }},
    Entry{{"TUTTI_LOG_FILE", "NCCL_DEBUG_FILE", "",
           "file to which log lines are appended instead of standard error; %h is the host name, %p the process id"},
          "a path",
          [](Config& config, const std::string& text) { return parse(text, config.log_file); }},
    Entry{{"TUTTI_ALGORITHM", "NCCL_ALGO", "",
           "algorithm of all collectives that have one of this name: ring; of NCCL's, tree is "
           "double_binary_tree, where it can be, and a list forces none"},
          "a name",
          [](Config& config, const std::string& text) { return parse(text, config.algorithm); },
          false,
          algorithm_of_nccl},
    Entry{{"TUTTI_PROTOCOL", "NCCL_PROTO", "",
           "protocol of all lanes: LL, Simple or, on GPUs, LL128; of NCCL's LL, Simple and LL128, where it can be, and "
           "a list forces none"},
          "a name",
          [](Config& config, const std::string& text) { return parse(text, config.protocol); },
          false,
          protocol_of_nccl},
    Entry{
        {"TUTTI_COMPRESS", nullptr, "raw",
         "how floats of 32 and 16 bits travel: raw, as they are, or rounded to fewer bits: bf16, fp16, int8, int8_b32, "
         "int6, int4, fp8_e4m3, fp8_e5m2 or mxfp8; on all ranks alike"},
        "a name",
        [](Config& config, const std::string& text) { return parse(text, config.compression); }},
    Entry{
        {"TUTTI_MAX_RELATIVE_ERROR", nullptr, "0",
         "instead of TUTTI_COMPRESS: how large errors of sums may be, such as 0.01; calls travel as is quickest within "
         "it; 0: no bound; on all ranks alike"},
        "0, or a number above 0 and below 1",
        [](Config& config, const std::string& text) {
          return parse_within(text, 0.0, 1 - 0x1p-53, config.max_relative_error);
        },
        true},
    Entry{{"TUTTI_COMPRESS_ROUNDING", nullptr, "nearest",
           "how numbers between two codes of a narrow format are rounded: nearest, or stochastic, by random numbers, "
           "so that the mean of many results is right"},
          "nearest or stochastic",
          [](Config& config, const std::string& text) {
            config.compression_stochastic = text == "stochastic";
            return config.compression_stochastic || text == "nearest";
          },
          true},
    Entry{{"TUTTI_COMPRESS_SEED", nullptr, "0", "of the random numbers of stochastic rounding"},
          "a number",
          [](Config& config, const std::string& text) { return parse(text, config.compression_seed); }},
    Entry{{"TUTTI_TRANSPORT", nullptr, "",
           "what carries messages between ranks: shm, for ranks of one host, or tcp, ucx or verbs (RDMA), also where "
           "they share one; unset: shm, and between hosts verbs where all ranks have it, else tcp"},
          "a name",
          [](Config& config, const std::string& text) { return parse(text, config.transport); }},
    Entry{{"TUTTI_ENCRYPT", nullptr, "0",
           "1: what ranks of different hosts say to each other over TCP is encrypted; on all ranks alike"},
          "0 or 1",
          [](Config& config, const std::string& text) { return parse_switch(text, config.encrypt); },
          true},
    Entry{{"TUTTI_CHECK", nullptr, "",
           "wire: what goes over TCP carries a tag by which the other end finds altered data; on all ranks alike"},
          "wire, or nothing",
          [](Config& config, const std::string& text) { return config.check_compression = text == "wire"; },
          true},
    Entry{{"TUTTI_TOPO_FILE", "NCCL_TOPO_FILE", "",
           "file that says what this host is made of, instead of looking around: of `tutti topo --json`, of NCCL or of "
           "hwloc"},
          "a path",
          [](Config& config, const std::string& text) { return parse(text, config.topo_file); }},
    Entry{
        {"TUTTI_TOPO_DUMP_FILE", "NCCL_TOPO_DUMP_FILE", "",
         "file to which rank 0 writes what all hosts are made of, as far as was found: ours if its name ends in .json, "
         "else NCCL's"},
        "a path",
        [](Config& config, const std::string& text) { return parse(text, config.topo_dump_file); }},
    Entry{{"TUTTI_CHANNELS", nullptr, "0",
           "copies of a plan that share the work; 0: the tuner's choice. On host memory there is 1"},
          "a whole number, 0 or more",
          [](Config& config, const std::string& text) { return parse(text, config.channels); }},
    Entry{{"TUTTI_VERIFY", nullptr, "0", "1: prove every plan before its first use, also those of many ranks"},
          "0 or 1",
          [](Config& config, const std::string& text) { return parse_switch(text, config.verify); }},
    Entry{{"TUTTI_TUNER_PLUGIN", "NCCL_TUNER_PLUGIN", "",
           "tuner plugin for NCCL, of version 4 or 5, that may choose algorithms: a file, or NAME for "
           "libnccl-tuner-NAME.so; on all ranks alike; unset or none: none"},
          "a name or a path",
          [](Config& config, const std::string& text) { return parse(text, config.tuner_plugin); }},
    Entry{{"TUTTI_TUNE", nullptr, "0",
           "which calls on host memory, or on GPUs of one host, try other algorithms while they are made, and keep the "
           "fastest: 1 (all), exact (those whose result is the same bits either way, such as copies and sums of "
           "integers), or 0 (none); on all ranks alike. A graph that captures them meanwhile replays what is being "
           "tried for ever: capture after the verdict, or take a TUTTI_TUNE_FILE"},
          "0, exact or 1",
          [](Config& config, const std::string& text) { return parse_tune(text, config.tune); }},
    Entry{{"TUTTI_TUNE_FILE", nullptr, "",
           "with TUTTI_TUNE: file in which rank 0 keeps what calls have come to, for later runs on machines like this "
           "(ranks, "
           "the CPUs they share, links); on all ranks set, or on none. tutti explain --tune-file shows it"},
          "a path",
          [](Config& config, const std::string& text) { return parse(text, config.tune_file); }},
    Entry{
        {"TUTTI_PROBE", nullptr, "1",
         "0: the TCP links between hosts are not measured when ranks join, which decides on algorithms; on one rank it "
         "holds for all"},
        "0 or 1",
        [](Config& config, const std::string& text) { return parse_switch(text, config.probe); }},
    Entry{{"TUTTI_DETERMINISTIC", nullptr, "0",
           "1: nothing measured changes how a call runs, whatever TUTTI_PROBE, TUTTI_TUNE and TUTTI_TUNE_FILE say; on "
           "all ranks alike"},
          "0 or 1",
          [](Config& config, const std::string& text) { return parse_switch(text, config.deterministic); }},
    Entry{
        {"TUTTI_P2P_LEVEL", "NCCL_P2P_LEVEL", "PHB",
         "GPUs farther apart than this talk through host memory, though they reach each other: LOC (all do), NVL, PIX, "
         "PXB, PHB or SYS (none does)"},
        "LOC, NVL, PIX, PXB, PHB or SYS",
        [](Config& config, const std::string& text) { return parse_path(text, config.p2p_level); }},
    Entry{{"TUTTI_P2P_DISABLE", "NCCL_P2P_DISABLE", "0", "1: as TUTTI_P2P_LEVEL=LOC"},
          "0 or 1",
          [](Config& config, const std::string& text) { return parse_switch(text, config.p2p_disabled); }},
    Entry{{"TUTTI_IB_DISABLE", "NCCL_IB_DISABLE", "0",
           "1: no RDMA between hosts unless TUTTI_TRANSPORT=verbs asks for it; on one rank it holds for all"},
          "0 or 1",
          [](Config& config, const std::string& text) { return parse_switch(text, config.ib_disabled); }},
    Entry{{"TUTTI_GPUDIRECT", "NCCL_NET_GDR_LEVEL", "auto",
           "whether network cards read and write memory of GPUs: auto (where they reach it), off (all goes through "
           "memory of the host), or on (or it is an error); of NCCL's levels LOC is off, and all others are auto"},
          "auto, off or on, or one of NCCL's LOC, NVL, PIX, PXB, PHB and SYS",
          [](Config& config, const std::string& text) { return parse_gpudirect(text, config.gpudirect); }},
    Entry{{"TUTTI_IB_HCA", "NCCL_IB_HCA", "",
           "RDMA devices, each with a port if it is to be one: beginnings (mlx5,rxe0:1), names (=mlx5_0:1), or all but "
           "some (^mlx5_3, ^=mlx5_3)"},
          "a list of devices",
          [](Config& config, const std::string& text) { return parse(text, config.ib_hca); }},
    Entry{{"TUTTI_IB_GID_INDEX", "NCCL_IB_GID_INDEX", "-1",
           "entry of an RDMA port's table of addresses; -1: RoCE v2 over IPv4 if there is one"},
          "a whole number, -1 to 255",
          [](Config& config, const std::string& text) { return parse_within(text, -1, 255, config.ib_gid_index); }},
    Entry{
        {"TUTTI_IB_TC", "NCCL_IB_TC", "0", "traffic class of what RDMA devices send"},
        "a whole number, 0 to 255",
        [](Config& config, const std::string& text) { return parse_within(text, 0U, 255U, config.ib_traffic_class); }},
    Entry{{"TUTTI_IB_TIMEOUT", "NCCL_IB_TIMEOUT", "17",
           "time without an answer after which an RDMA device repeats: 4.096 us times 2 to the power of this"},
          "a whole number, 1 to 31",
          [](Config& config, const std::string& text) { return parse_within(text, 1U, 31U, config.ib_timeout); }},
    Entry{{"TUTTI_IB_RETRY_CNT", "NCCL_IB_RETRY_CNT", "6",
           "times that it does so before the other end counts as dead; 7: soft-RoCE never gives up"},
          "a whole number, 0 to 7",
          [](Config& config, const std::string& text) { return parse_within(text, 0U, 7U, config.ib_retry_count); }},
    Entry{{"TUTTI_RANK", nullptr, "", "this process's rank, where no launcher gives one"}, "a number", others},
    Entry{{"TUTTI_RANKS", nullptr, "", "number of ranks, with TUTTI_RANK"}, "a number", others},
    Entry{{"TUTTI_ROOT", nullptr, "",
           "host:port at which rank 0 meets the others; unset: one process of this host started all"},
          "host:port",
          others},
    Entry{{"TUTTI_NCCL_MEMORY", nullptr, "cuda", "where libnccl.so.2 finds the buffers of programs: cuda or host"},
          "cuda or host",
          others},
    Entry{{"TUTTI_NCCL_COMPRESS", nullptr, "",
           "as TUTTI_COMPRESS, and in its place, for those collectives of libnccl.so.2 that the next variables say, of "
           "32 or "
           "16 bits; raw, too; on all ranks alike; unset: none of them"},
          "a name",
          others},
    Entry{{"TUTTI_NCCL_COMPRESS_MAX_RELATIVE_ERROR", nullptr, "0",
           "instead of TUTTI_NCCL_COMPRESS: as TUTTI_MAX_RELATIVE_ERROR, for the same collectives; 0: no bound"},
          "0, or a number above 0 and below 1",
          others},
    Entry{{"TUTTI_NCCL_COMPRESS_MIN_BYTES", nullptr, "262144",
           "with TUTTI_NCCL_COMPRESS or its bound: from how many bytes on, of the larger of a rank's buffers"},
          "a whole number of bytes",
          others},
    Entry{{"TUTTI_NCCL_COMPRESS_TYPES", nullptr, "float32,float16,bfloat16",
           "with TUTTI_NCCL_COMPRESS or its bound: of which types"},
          "a list of float32, float16, bfloat16",
          others},
    Entry{{"TUTTI_NCCL_COMPRESS_COLLECTIVES", nullptr, "all_reduce,reduce_scatter,reduce",
           "with TUTTI_NCCL_COMPRESS or its bound: which collectives, of these, all_gather, broadcast, gather, scatter "
           "and "
           "all_to_all; of "
           "those that reduce, only sums and averages"},
          "a list of collectives",
          others},
    Entry{{"TUTTI_NCCL_COMPRESS_COMMS", nullptr, "*",
           "with TUTTI_NCCL_COMPRESS or its bound: patterns of names (ncclConfig_t's commName) that its communicators "
           "have: grad*,dp_?"},
          "a list of patterns",
          others},
};

void read_entry(const Environment& environment, const Entry& entry, ReadConfig& read) {
  const Variable& variable = entry.variable;
  Setting setting = {&variable, variable.fallback, "default"};
  for (const char* name : {variable.name, variable.alias}) {
    std::optional<std::string> text = name == nullptr ? std::nullopt : environment.get(name);
    if (!text) continue;
    if (name == variable.alias && entry.translate != nullptr) {
      text = entry.translate(*text, read.warnings);
      if (text->empty()) break;
    }
    if (entry.set(read.config, *text)) {
      setting.value = *text;
      setting.source = name;
    } else {
      const std::string why = std::string(name) + " is \"" + *text + "\", but must be " + entry.wanted;
      const std::string instead = *variable.fallback != '\0' ? std::string("taking ") + variable.fallback : "ignored";
      if (entry.insists) {
        read.config.refused = why;
      } else {
        read.warnings.push_back(why + ": " + instead);
      }
    }
    break;
  }
  read.settings.push_back(std::move(setting));
}

const ReadConfig& of_process() {
  static const ReadConfig read = [] {
    ReadConfig made = read_config(environment());
    set_log_level(made.config.log);
    if (!made.config.log_file.empty() && !log_to_file(made.config.log_file)) {
      log(LogLevel::warn, "log file %s: %s; logging to standard error instead",
          expand_log_file(made.config.log_file).c_str(), std::strerror(errno));
    }
    for (const std::string& note : made.notes) log(LogLevel::info, "%s", note.c_str());
    for (const std::string& warning : made.warnings) log(LogLevel::warn, "%s", warning.c_str());
    return made;
  }();
  return read;
}

}  // namespace

Environment Environment::of_process() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return Environment(std::move(variables));
}

std::optional<std::string> Environment::get(const std::string& name) const {
  const auto found = variables_.find(name);
  if (found == variables_.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

std::span<const Variable> variables() {
  static const auto list = [] {
    std::array<Variable, kEntries.size()> made{};
    std::transform(kEntries.begin(), kEntries.end(), made.begin(), [](const Entry& entry) { return entry.variable; });
    return made;
  }();
  return list;
}

ReadConfig read_config(const Environment& environment) {
  ReadConfig read;
  for (const Entry& entry : kEntries) read_entry(environment, entry, read);
  for (const Setting& setting : read.settings) {
    if (setting.source == "NCCL_ALGO") read.config.nccls_algorithm = true;
    if (setting.source == "NCCL_PROTO") read.config.nccls_protocol = true;
  }
  const auto scale = [&read](std::int64_t& milliseconds) {
    if (milliseconds == 0) return;  // None; and no other may become it.
    const double scaled = static_cast<double>(milliseconds) * read.config.timeout_scale;
    milliseconds = std::llround(std::clamp(scaled, 1.0, static_cast<double>(kLongestTimeoutMs)));
  };
  scale(read.config.timeout_ms);
  scale(read.config.init_timeout_ms);
  for (std::string& warning : similar_names(environment, variables())) read.warnings.push_back(std::move(warning));
  read.notes = notes_on_nccls(environment, variables());
  return read;
}

const Config& config() { return of_process().config; }
const std::vector<Setting>& settings() { return of_process().settings; }

const Environment& environment() {
  static const Environment read = Environment::of_process();
  return read;
}

}  // namespace tutti
