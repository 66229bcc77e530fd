// Table of the options of the perf tools. The parser (options.cc) and the help text use it.
#pragma once

#include <span>
#include <string>

namespace perf {

// Keys of options without a letter. Other options use their letter as key.
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

enum class OptionKind {
  of_nccl_tests,  // Same meaning as in nccl-tests.
  of_tutti,
  ignored,   // Option of nccl-tests; accepted without effect.
  internal,  // Passed to the processes that --hosts starts.
};

struct OptionRow {
  const char* name;
  int key;
  const char* argument;  // Placeholder of the value; null: takes none.
  OptionKind kind;
  const char* help;  // Meaning, unit, values and default.
};

std::span<const OptionRow> option_table();

// Text of --help, in lines of at most 100 columns.
std::string help_text(const char* program);

}  // namespace perf
