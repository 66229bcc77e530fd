#include "perf/tool/options.h"

#include <getopt.h>

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "perf/tool/fail.h"
#include "tutti/tutti.h"

namespace perf {
namespace {

// Options without a letter.
enum LongOnly {
  kRanks = 256,
  kMemory,
  kAlgorithm,
  kProtocol,
  kTransport,
  kCompress,
  kMaxRelativeError,
  kCompressionRounding,
  kChannels,
  kHosts,
  kSsh,
  kHostPart,
  kNoPin,
  kVersion
};

struct Description {
  const char* name;
  int key;
  const char* argument;  // Null: takes none.
  const char* help;      // Null: nccl-tests has it, and it means nothing here.
};

constexpr Description kDescriptions[] = {
    {"minbytes", 'b', "SIZE", "smallest size (default 8; K, M, G: binary units)"},
    {"maxbytes", 'e', "SIZE", "largest size (default 64M)"},
    {"stepbytes", 'i', "SIZE", "step between sizes"},
    {"stepfactor", 'f', "N", "factor between sizes, instead of a step (default 4)"},
    {"iters", 'n', "N", "timed iterations per row (default 20); tiny sizes take several calls in each"},
    {"agg_iters", 'm', "N", "calls per group (default 1)"},
    {"warmup_iters", 'w', "N", "iterations before the timed ones (default 5)"},
    {"check", 'c', "N", "checked runs per row (default 1; 0: none)"},
    {"op", 'o', "NAME", "sum (default), prod, min, max, avg, mulsum or all"},
    {"datatype", 'd', "NAME", "float (default), double, half, bfloat16, f8e4m3, f8e5m2, [u]int{8,16,32,64} or all"},
    {"root", 'r', "RANK", "root (default 0), or all"},
    {"nthreads", 't', "N", "threads per process, each with a rank; under a launcher only with --ranks"},
    {"ngpus", 'g', "N", "ranks per thread, driven in groups; on host memory it multiplies -t"},
    {"average", 'a', "0-3", "time of rank 0, mean, fastest, slowest rank (default)"},
    {"report_cputime", 'C', "0|1", "report the CPU time of the ranks' threads instead"},
    {"timeout", 'T', "SECONDS", "longest wait of a call, barriers of the tool included (default 600)"},
    {"cudagraph", 'G', "N", "on GPUs: replay a graph of all iterations N times"},
    {"local_register", 'R', "0-2", "on GPUs, 1 or 2: buffers lie in windows, in which other ranks work"},
    {"output_file", 'J', "FILE", "write JSON too"},
    {"ranks", kRanks, "N", "fork N processes (default 2, 1 with -t, -g or cuda, or the launcher's ranks)"},
    {"memory", kMemory, "KIND", "host: malloc'd, private (default); registered: tutti_mem_alloc; cuda: GPUs, in turn"},
    {"algorithm", kAlgorithm, "NAME", "force this algorithm; a wrong name lists those that there are"},
    {"protocol", kProtocol, "NAME", "force this protocol: LL or Simple; on GPUs, LL128 too"},
    {"transport", kTransport, "NAME", "force this transport: shm, tcp, verbs or ucx"},
    {"compress", kCompress, "NAME",
     "how floats travel: raw, or rounded, as bf16, fp16, int8, int8_b32, int6, int4, fp8_e4m3, fp8_e5m2 or mxfp8"},
    {"max-relative-error", kMaxRelativeError, "X",
     "instead: as the tuner says, with errors of sums up to this, such as 0.01"},
    {"wire-rounding", kCompressionRounding, "NAME", "of what travels rounded: nearest or stochastic"},
    {"channels", kChannels, "N", "force this many channels (1 on host memory)"},
    {"hosts", kHosts, "LIST", "start processes on these through ssh, so many on each: node1:2,node2:2"},
    {"ssh", kSsh, "COMMAND", "what --hosts calls as ssh is called, with options of its own (default ssh)"},
    {"host-part", kHostPart, "PART", nullptr},
    {"no-pin", kNoPin, nullptr, "do not pin ranks to cores; they never are where ranks outnumber cores"},
    {"version", kVersion, nullptr, "of the library"},
    {"help", 'h', nullptr, "this"},
    {"run_cycles", 'N', "N", nullptr},
    {"parallel_init", 'p', "0|1", nullptr},
    {"blocking", 'z', "0-3", nullptr},
    {"stream_null", 'y', "0|1", nullptr},
    {"report_timestamps", 'S', "0|1", nullptr},
    {"cta_policy", 'x', "0-2", nullptr},
    {"unalign", 'u', "N", nullptr},
    {"per_iter_timing", 'I', "0|1", nullptr},
};

[[noreturn]] void end_of_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) fail("standard output: %s", std::strerror(errno));
  std::exit(0);
}

// "--run_cycles (-N), --blocking (-z)"
std::string ignored_options() {
  std::string list;
  for (const Description& option : kDescriptions) {
    if (option.help != nullptr || option.key >= 256) continue;
    list += std::string(list.empty() ? "--" : ", --") + option.name + " (-" + static_cast<char>(option.key) + ")";
  }
  return list;
}

[[noreturn]] void print_help() {
  std::printf("usage: %s [options]\n", program_name());
  for (const Description& option : kDescriptions) {
    if (option.help == nullptr) continue;
    char letter[8] = "   ";
    if (option.key < 256) std::snprintf(letter, sizeof letter, "-%c,", option.key);
    char name[48];
    std::snprintf(name, sizeof name, "--%s %s", option.name, option.argument != nullptr ? option.argument : "");
    std::printf("  %s %-26s %s\n", letter, name, option.help);
  }
  std::printf(
      "--hosts needs this program and folder at the same place on all hosts. It passes on TUTTI_*, NCCL_*, UCX_* and "
      "LD_LIBRARY_PATH.\n"
      "Under mpirun, srun or torchrun the ranks are the launcher's, unless --ranks is given.\n"
      "Accepted for nccl-tests and ignored: %s.\n",
      ignored_options().c_str());
  end_of_output();
}

[[noreturn]] void print_version() {
  const int version = tutti_version();
  std::printf("%s of tutti %d.%d.%d\n", program_name(), version / 10000, version / 100 % 100, version % 100);
  end_of_output();
}

std::uint64_t number(const char* option, const char* text, std::uint64_t least, std::uint64_t most) {
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text, &end, 10);
  if (std::isdigit(static_cast<unsigned char>(*text)) == 0 || *end != '\0' || value < least || value > most) {
    fail("--%s %s: give a whole number from %llu to %llu", option, text, static_cast<unsigned long long>(least),
         static_cast<unsigned long long>(most));
  }
  return value;
}

std::uint64_t size(const char* option, const char* text) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  double unit = 1;
  switch (std::toupper(static_cast<unsigned char>(*end))) {
    case 'K': unit = 1024.0, ++end; break;
    case 'M': unit = 1048576.0, ++end; break;
    case 'G': unit = 1073741824.0, ++end; break;
    default: break;
  }
  if (end == text || *end != '\0' || !(value >= 0) || value * unit > 1e15) {
    fail("--%s %s: give a size in bytes, for instance 8, 64K, 1.5M or 2G", option, text);
  }
  return static_cast<std::uint64_t>(value * unit);
}

std::vector<Operation> operations_named(const char* text) {
  if (std::strcmp(text, "all") == 0) return all_operations();
  for (const Operation& operation : all_operations()) {
    if (std::strcmp(text, operation.name) == 0) return {operation};
  }
  fail("--op %s: give one of sum, prod, min, max, avg, mulsum, all", text);
}

std::vector<Element> elements_named(const char* text) {
  if (std::strcmp(text, "all") == 0) return all_elements();
  std::string names;
  for (const Element& element : all_elements()) {
    if (std::strcmp(text, element.name) == 0 || std::strcmp(text, element.long_name) == 0) return {element};
    names.append(element.name).append(", ");
  }
  fail("--datatype %s: give one of %sall", text, names.c_str());
}

Memory memory_named(const char* text) {
  if (std::strcmp(text, "host") == 0) return Memory::host;
  if (std::strcmp(text, "registered") == 0) return Memory::registered;
  if (std::strcmp(text, "cuda") == 0) return Memory::cuda;
  fail("--memory %s: give host, registered or cuda", text);
}

double part_of_one(const char* name, const char* text) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(value > 0 && value < 1))
    fail("--%s %s: give a number above 0 and below 1", name, text);
  return value;
}

void apply(const Description& option, const char* text, Options& options) {
  const auto count = [&](std::uint64_t least) {
    return static_cast<std::uint32_t>(number(option.name, text, least, 1'000'000'000));
  };
  switch (option.key) {
    case 'b': options.min_bytes = size(option.name, text); break;
    case 'e': options.max_bytes = size(option.name, text); break;
    case 'i': options.step_bytes = size(option.name, text); break;
    case 'f': options.step_factor = count(1); break;
    case 'n': options.iterations = count(1); break;
    case 'm': options.aggregated = count(1); break;
    case 'w': options.warmups = count(0); break;
    case 'c': options.checks = count(0); break;
    case 'o': options.operations = operations_named(text); break;
    case 'd': options.elements = elements_named(text); break;
    case 'r': options.root = std::strcmp(text, "all") == 0 ? -1 : static_cast<int>(count(0)); break;
    case 't': options.threads = static_cast<std::uint32_t>(number(option.name, text, 1, 1024)); break;
    case 'g': options.per_thread = static_cast<std::uint32_t>(number(option.name, text, 1, 1024)); break;
    case 'G': options.graph_launches = count(0); break;
    case 'a': options.average = static_cast<Average>(number(option.name, text, 0, 3)); break;
    case 'C': options.cpu_time = number(option.name, text, 0, 1) != 0; break;
    case 'T': options.timeout_ms = static_cast<std::int64_t>(count(0)) * 1000; break;
    case 'J': options.json_file = text; break;
    case 'R': options.windows = number(option.name, text, 0, 2) != 0; break;
    case kRanks: options.processes = static_cast<std::uint32_t>(number(option.name, text, 1, 1024)); break;
    case kMemory: options.memory = memory_named(text); break;
    case kAlgorithm: options.algorithm = text; break;
    case kProtocol: options.protocol = text; break;
    case kTransport: options.transport = text; break;
    case kCompress: options.compression = text; break;
    case kMaxRelativeError: options.max_relative_error = part_of_one(option.name, text); break;
    case kCompressionRounding: options.compression_rounding = text; break;
    case kChannels: options.channels = count(1); break;
    case kHosts: options.hosts = parse_hosts(text); break;
    case kSsh: options.ssh = text; break;
    case kHostPart: options.part = parse_part(text); break;
    case kNoPin: options.pin = false; break;
    case kVersion: print_version();
    case 'h': print_help();
    default: std::fprintf(stderr, "%s: --%s has no meaning here: ignored\n", program_name(), option.name);
  }
}

// What options mean together. `given`: the letters of those that there were.
void settle_sizes(Options& options, const std::string& given) {
  const auto gave = [&](char letter) { return given.find(letter) != std::string::npos; };
  if (options.min_bytes > options.max_bytes) {
    if (gave('e')) fail("--minbytes is above --maxbytes: there is nothing to measure");
    options.max_bytes = options.min_bytes;
  }
  const bool steps = options.step_factor > 1 || options.step_bytes > 0;
  if (!steps && !gave('f') && !gave('i')) options.step_factor = 4;
  if (options.min_bytes == options.max_bytes) return;
  if (options.step_factor == 1 && options.step_bytes == 0)
    fail("sizes never grow so: give --stepfactor 2 or more, or --stepbytes 1 or more");
  if (options.min_bytes == 0 && options.step_factor > 1)
    fail("--minbytes 0 never grows by a factor: give 1 or more, or --stepbytes instead of --stepfactor");
}

void settle_ranks(Options& options) {
  if (options.memory == Memory::cuda) return;
  options.threads *= std::exchange(options.per_thread, 1);
  const char* ignored = "%s: --%s has no meaning on host memory: ignored\n";
  if (std::exchange(options.graph_launches, 0) != 0) std::fprintf(stderr, ignored, program_name(), "cudagraph");
  if (std::exchange(options.windows, false)) std::fprintf(stderr, ignored, program_name(), "local_register");
}

}  // namespace

Options parse_options(int argc, char** argv) {
  std::string letters;
  std::vector<option> longs;
  for (const Description& known : kDescriptions) {
    const int has_argument = known.argument != nullptr ? required_argument : no_argument;
    longs.push_back({known.name, has_argument, nullptr, known.key});
    if (known.key >= 256) continue;
    letters.push_back(static_cast<char>(known.key));
    if (known.argument != nullptr) letters.push_back(':');
  }
  longs.push_back({});

  Options options;
  options.words.assign(argv + 1, argv + argc);
  std::string given;  // Letters.
  options.operations = operations_named("sum");
  options.elements = elements_named("float");
  int key = 0;
  while ((key = ::getopt_long(argc, argv, letters.c_str(), longs.data(), nullptr)) != -1) {
    if (key < 256) given.push_back(static_cast<char>(key));
    if (key == '?') fail("see %s --help", program_name());  // getopt has said what is wrong.
    for (const Description& known : kDescriptions) {
      if (known.key == key) apply(known, optarg, options);
    }
  }
  if (optind < argc) fail("%s: not an option; see %s --help", argv[optind], program_name());
  settle_sizes(options, given);
  if (!options.hosts.empty() && options.processes > 0)
    fail("--ranks counts processes of this host: give those of each host, as in --hosts node1:%u", options.processes);
  if (options.hosts.empty() && options.ssh != Options().ssh)
    std::fprintf(stderr, "%s: --ssh has no meaning without --hosts: ignored\n", program_name());
  settle_ranks(options);
  return options;
}

}  // namespace perf
