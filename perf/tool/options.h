// Command line of a perf tool, parsed and checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "perf/tool/elements.h"
#include "perf/tool/hosts.h"

namespace perf {

enum class Average { first_rank, mean, fastest, slowest };  // -a, in nccl-tests' numbering.
enum class Memory { host, mapped, cuda };

struct Options {
  std::uint64_t min_bytes = 8;
  std::uint64_t max_bytes = 64 << 20;
  std::uint64_t step_bytes = 0;
  std::uint32_t step_factor = 1;  // Above 1: each size is the previous one times this factor. 4 if no step is given.
  std::uint32_t iterations = 20;
  std::uint32_t aggregated = 1;  // Calls per group.
  std::uint32_t warmups = 5;
  // Above 0: iterations are captured into a graph, which is replayed this many times.
  std::uint32_t graph_launches = 0;
  std::uint32_t checks = 1;  // Checked runs per row; 0: none.
  std::vector<Operation> operations;
  std::vector<Element> elements;
  int root = 0;                  // -1: all.
  std::uint32_t threads = 1;     // Per process.
  std::uint32_t per_thread = 1;  // Ranks; always 1 on host memory, where each rank needs its own thread.
  std::uint32_t processes = 0;   // 0: one process, or those that the launcher started.
  std::int64_t timeout_ms = 0;   // 0: the library's default.
  Average average = Average::slowest;
  bool cpu_time = false;
  bool pin = true;
  bool windows = false;  // On GPUs: register buffers as symmetric windows.
  Memory memory = Memory::host;
  std::string json_file;
  std::string algorithm, protocol, transport, compression, compression_rounding;
  double max_relative_error = 0;  // 0: no bound.
  std::uint32_t channels = 0;
  std::vector<Host> hosts;         // Empty: this host only.
  std::string ssh = "ssh";         // Command that reaches other hosts, with its arguments.
  HostPart part;                   // This process's part, if --hosts started it.
  std::vector<std::string> words;  // The command line without the program name.
};

// Fails with a message on stderr if an option is invalid. Prints the help and exits on --help.
Options parse_options(int argc, char** argv);

}  // namespace perf
