// Command line of a perf tool, parsed and checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "perf/tool/elements.h"
#include "perf/tool/hosts.h"

namespace perf {

enum class Average { first_rank, mean, fastest, slowest };  // -a, in nccl-tests' numbering.
enum class Memory { host, registered, cuda };

struct Options {
  std::uint64_t min_bytes = 8;
  std::uint64_t max_bytes = 64 << 20;
  std::uint64_t step_bytes = 0;
  std::uint32_t step_factor = 1;  // Above 1: sizes are multiplied instead of added to. By 4 if no step is given.
  std::uint32_t iterations = 20;
  std::uint32_t aggregated = 1;  // Calls per group.
  std::uint32_t warmups = 5;
  std::uint32_t graph_launches = 0;  // Above 0: iterations are captured into a graph, and it is replayed so often.
  std::uint32_t checks = 1;          // Checked runs per row; 0: none.
  std::vector<Operation> operations;
  std::vector<Element> elements;
  int root = 0;                  // -1: all.
  std::uint32_t threads = 1;     // Per process.
  std::uint32_t per_thread = 1;  // Ranks; always 1 on host memory, where each wants a thread of its own.
  std::uint32_t processes = 0;   // 0: one, or what the launcher started.
  std::int64_t timeout_ms = 0;   // 0: the library's.
  Average average = Average::slowest;
  bool cpu_time = false;
  bool pin = true;
  bool windows = false;  // On GPUs: buffers are shown to all ranks.
  Memory memory = Memory::host;
  std::string json_file;
  std::string algorithm, protocol, transport, compression, compression_rounding;
  double max_relative_error = 0;  // 0: no bound.
  std::uint32_t channels = 0;
  std::vector<Host> hosts;         // None: this one.
  std::string ssh = "ssh";         // By which others are reached, with its arguments.
  HostPart part;                   // Part of this process, if --hosts started it.
  std::vector<std::string> words;  // All of the command line after the program's name.
};

// Ends the program with a sentence on stderr if something is wrong, and with the help on --help.
Options parse_options(int argc, char** argv);

}  // namespace perf
