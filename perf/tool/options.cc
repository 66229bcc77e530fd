#include "perf/tool/options.h"

#include <getopt.h>

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "perf/tool/fail.h"
#include "perf/tool/option_table.h"
#include "tutti/tutti.h"

namespace perf {
namespace {

[[noreturn]] void end_of_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) fail("standard output: %s", std::strerror(errno));
  std::exit(0);
}

[[noreturn]] void print_help() {
  std::fputs(help_text(program_name()).c_str(), stdout);
  end_of_output();
}

[[noreturn]] void print_version() {
  const int version = tutti_version();
  std::printf("%s, Tutti %d.%d.%d\n", program_name(), version / 10000, version / 100 % 100, version % 100);
  end_of_output();
}

std::uint64_t number(const char* option, const char* text, std::uint64_t min, std::uint64_t max) {
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text, &end, 10);
  if (std::isdigit(static_cast<unsigned char>(*text)) == 0 || *end != '\0' || value < min || value > max) {
    fail("--%s %s: must be a whole number from %llu to %llu", option, text, static_cast<unsigned long long>(min),
         static_cast<unsigned long long>(max));
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
    fail("--%s %s: must be a size in bytes, such as 8, 64K, 1.5M or 2G", option, text);
  }
  return static_cast<std::uint64_t>(value * unit);
}

std::vector<Operation> operations_named(const char* text) {
  if (std::strcmp(text, "all") == 0) return all_operations();
  for (const Operation& operation : all_operations()) {
    if (std::strcmp(text, operation.name) == 0) return {operation};
  }
  fail("--op %s: must be one of sum, prod, min, max, avg, band, bor, bxor, mulsum, all", text);
}

std::vector<Element> elements_named(const char* text) {
  if (std::strcmp(text, "all") == 0) return all_elements();
  std::string names;
  for (const Element& element : all_elements()) {
    if (std::strcmp(text, element.name) == 0 || std::strcmp(text, element.long_name) == 0) return {element};
    names.append(element.name).append(", ");
  }
  fail("--datatype %s: must be one of %sall", text, names.c_str());
}

Memory memory_named(const char* text) {
  if (std::strcmp(text, "host") == 0) return Memory::host;
  if (std::strcmp(text, "mapped") == 0) return Memory::mapped;
  if (std::strcmp(text, "cuda") == 0) return Memory::cuda;
  if (std::strcmp(text, "registered") == 0) fail("--memory registered: this value is now called mapped");
  fail("--memory %s: must be host, mapped or cuda", text);
}

double part_of_one(const char* name, const char* text) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(value > 0 && value < 1))
    fail("--%s %s: must be above 0 and below 1", name, text);
  return value;
}

void apply(const OptionRow& option, const char* text, Options& options) {
  const auto count = [&](std::uint64_t min) {
    return static_cast<std::uint32_t>(number(option.name, text, min, 1'000'000'000));
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
    default:
      std::fprintf(stderr, "%s: ignoring --%s, which nccl-tests has and Tutti does not\n", program_name(), option.name);
  }
}

// Resolves options that depend on each other. `given`: letters of the options on the command line.
void settle_sizes(Options& options, const std::string& given) {
  const auto gave = [&](char letter) { return given.find(letter) != std::string::npos; };
  if (options.min_bytes > options.max_bytes) {
    if (gave('e'))
      fail("--minbytes %llu is above --maxbytes %llu", static_cast<unsigned long long>(options.min_bytes),
           static_cast<unsigned long long>(options.max_bytes));
    options.max_bytes = options.min_bytes;
  }
  const bool steps = options.step_factor > 1 || options.step_bytes > 0;
  if (!steps && !gave('f') && !gave('i')) options.step_factor = 4;
  if (options.min_bytes == options.max_bytes) return;
  if (options.step_factor == 1 && options.step_bytes == 0)
    fail("the sizes do not grow; pass --stepfactor 2 or more, or --stepbytes 1 or more");
  if (options.min_bytes == 0 && options.step_factor > 1)
    fail("--minbytes 0 does not grow by a factor; pass 1 or more, or --stepbytes instead of --stepfactor");
}

// Fails if the library reduces none of the types by any of the operations.
void check_operations(const Options& options) {
  for (const Element& element : options.elements) {
    for (const Operation& operation : options.operations) {
      if (supports(element, operation, options.memory == Memory::cuda)) return;
    }
  }
  fail("--op %s is not defined for --datatype %s%s", options.operations.front().name, options.elements.front().name,
       options.memory == Memory::cuda ? " on GPUs" : "");
}

void settle_ranks(Options& options) {
  if (options.memory == Memory::cuda) return;
  options.threads *= std::exchange(options.per_thread, 1);
  const char* ignored = "%s: ignoring --%s, which applies to GPUs only\n";
  if (std::exchange(options.graph_launches, 0) != 0) std::fprintf(stderr, ignored, program_name(), "cudagraph");
  if (std::exchange(options.windows, false)) std::fprintf(stderr, ignored, program_name(), "local_register");
}

}  // namespace

Options parse_options(int argc, char** argv) {
  std::string letters;
  std::vector<option> longs;
  for (const OptionRow& known : option_table()) {
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
    if (key == '?') fail("see %s --help", program_name());  // getopt_long() has printed the error.
    for (const OptionRow& known : option_table()) {
      if (known.key == key) apply(known, optarg, options);
    }
  }
  if (optind < argc) fail("unexpected argument %s; see %s --help", argv[optind], program_name());
  settle_sizes(options, given);
  if (!options.hosts.empty() && options.processes > 0)
    fail("--ranks applies to this host only; pass the number of processes of each host, such as --hosts node1:%u",
         options.processes);
  if (options.hosts.empty() && options.ssh != Options().ssh)
    std::fprintf(stderr, "%s: ignoring --ssh, which applies to --hosts only\n", program_name());
  check_operations(options);
  settle_ranks(options);
  return options;
}

}  // namespace perf
