#include "perf/tool/option_table.h"

#include <algorithm>
#include <string_view>

namespace perf {
namespace {

constexpr std::size_t kColumns = 100;
constexpr std::size_t kTitleColumns = 32;

constexpr auto kTests = OptionKind::of_nccl_tests;
constexpr auto kTutti = OptionKind::of_tutti;

constexpr OptionRow kTable[] = {
    {"minbytes", 'b', "SIZE", kTests,
     "Smallest size in bytes; K, M and G are powers of 1024. Sizes are rounded down to whole elements. Default 8."},
    {"maxbytes", 'e', "SIZE", kTests, "Largest size in bytes. Default 64M."},
    {"stepbytes", 'i', "SIZE", kTests, "Add SIZE bytes from row to row, instead of --stepfactor."},
    {"stepfactor", 'f', "N", kTests, "Multiply the size by N from row to row. Default 4."},
    {"iters", 'n', "N", kTests, "Timed iterations per row. Default 20. At tiny sizes, each has several calls."},
    {"agg_iters", 'm', "N", kTests,
     "Calls in each group, on separate parts of the buffers where these suffice; a group is one iteration. Default 1."},
    {"warmup_iters", 'w', "N", kTests, "Untimed iterations before the timed ones. Default 5."},
    {"check", 'c', "N", kTests, "Calls per row whose results are checked; 0: none. Default 1."},
    {"op", 'o', "NAME", kTests, "Reduction: sum, prod, min, max, avg, band, bor, bxor, mulsum or all. Default sum."},
    {"datatype", 'd', "NAME", kTests,
     "Element type: float, double, half, bfloat16, f8e4m3, f8e5m2, int8, int16, int32, int64, uint8, uint16, uint32, "
     "uint64, bool, complex64, complex128 or all. Default float."},
    {"root", 'r', "RANK", kTests, "Root rank of broadcast, reduce, gather and scatter, or all. Default 0."},
    {"nthreads", 't', "N", kTests,
     "Threads per process, each with a rank (or with -g ranks). Under a launcher only with --ranks. Default 1."},
    {"ngpus", 'g', "N", kTests,
     "Ranks per thread, each with a GPU, called in groups. On host memory, threads are multiplied instead. Default 1."},
    {"average", 'a', "0-3", kTests,
     "Time that is printed: 0 of rank 0, 1 mean of all ranks, 2 fastest rank, 3 slowest rank. Default 3."},
    {"report_cputime", 'C', "0|1", kTests, "1: print the CPU time of the ranks' threads instead. Default 0."},
    {"timeout", 'T', "SECONDS", kTests, "Timeout of a call, including barriers of this tool. Default 600."},
    {"cudagraph", 'G', "N", kTests,
     "On GPUs: capture all iterations in a CUDA graph and replay it N times. Default 0."},
    {"local_register", 'R', "0-2", kTests,
     "On GPUs, 1 or 2: register buffers as windows, which other ranks access directly. They are allocated by "
     "tutti_mem_alloc_cuda instead of cudaMalloc. Default 0."},
    {"output_file", 'J', "FILE", kTests, "Also write the results to FILE, in JSON."},
    {"ranks", kRanks, "N", kTutti,
     "Processes to start on this host, each with a rank or those of -t and -g. Default 2; 1 with -t, -g or --memory "
     "cuda; under mpirun, srun or torchrun, the launcher's processes are used."},
    {"memory", kMemory, "KIND", kTutti,
     "Memory of the buffers: host (malloc), mapped (tutti_mem_alloc, which other ranks can access) or cuda (GPUs, "
     "assigned to ranks round-robin). Default host."},
    {"algorithm", kAlgorithm, "NAME", kTutti, "Force an algorithm; a wrong name lists all. Default: chosen per size."},
    {"protocol", kProtocol, "NAME", kTutti,
     "Force a protocol: LL, Simple or, on GPUs, LL128. Default: chosen per size."},
    {"transport", kTransport, "NAME", kTutti,
     "Force a transport: shm, tcp, verbs, ucx or net_plugin. Default: shm within a host, verbs or tcp between hosts."},
    {"compress", kCompress, "NAME", kTutti,
     "Compression of float messages: raw (none), bf16, fp16, int8, int8_b32, int6, int4, fp8_e4m3, fp8_e5m2 or mxfp8. "
     "Default raw."},
    {"max-relative-error", kMaxRelativeError, "X", kTutti,
     "Instead of --compress: the fastest compression whose expected relative error is at most X, such as 0.01. "
     "Default: no bound."},
    {"compress-rounding", kCompressionRounding, "NAME", kTutti,
     "Rounding under compression: nearest or stochastic. Default nearest."},
    {"channels", kChannels, "N", kTutti,
     "Force the number of channels, which run parts of a call in parallel; 1 on host memory. Default: chosen per "
     "size."},
    {"hosts", kHosts, "LIST", kTutti,
     "Start processes on these hosts by ssh, with the number of each: node1:2,node2:2. Default: this host only."},
    {"ssh", kSsh, "COMMAND", kTutti,
     "Command of --hosts in place of ssh, with its options: 'ssh -p 2222'. Default ssh."},
    {"no-pin", kNoPin, nullptr, kTutti,
     "Do not pin ranks to cores. Ranks that outnumber the cores of their host are never pinned."},
    {"version", kVersion, nullptr, kTutti, "Print the version of the library."},
    {"help", 'h', nullptr, kTests, "Print this text."},
    {"host-part", kHostPart, "PART", OptionKind::internal, ""},
    {"run_cycles", 'N', "N", OptionKind::ignored, ""},
    {"parallel_init", 'p', "0|1", OptionKind::ignored, ""},
    {"blocking", 'z', "0-3", OptionKind::ignored, ""},
    {"stream_null", 'y', "0|1", OptionKind::ignored, ""},
    {"report_timestamps", 'S', "0|1", OptionKind::ignored, ""},
    {"cta_policy", 'x', "0-2", OptionKind::ignored, ""},
    {"unalign", 'u', "N", OptionKind::ignored, ""},
    {"per_iter_timing", 'I', "0|1", OptionKind::ignored, ""},
};

// Wraps text into lines that begin at column `indent`; the first line already has `used` columns.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t used) {
  std::string lines;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    const bool breaks = used + word.size() > kColumns;
    if (breaks) lines += "\n" + std::string(indent, ' ');
    used = (breaks ? indent : used) + word.size() + 1;
    lines.append(word).append(" ");
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (text.empty() || used + text.substr(0, text.find(' ')).size() > kColumns) lines.pop_back();
  }
  return lines + "\n";
}

std::string letter_of(const OptionRow& row) {
  return row.key < kRanks ? std::string("-") + static_cast<char>(row.key) + ", " : std::string(4, ' ');
}

std::string section(const char* heading, OptionKind kind) {
  std::string text = std::string("\n") + heading + "\n";
  for (const OptionRow& row : kTable) {
    if (row.kind != kind) continue;
    std::string title = "  " + letter_of(row) + "--" + row.name + (row.argument == nullptr ? "" : " ");
    if (row.argument != nullptr) title += row.argument;
    title.resize(std::max(title.size() + 2, kTitleColumns), ' ');
    text += title + wrapped(row.help, kTitleColumns, title.size());
  }
  return text;
}

}  // namespace

std::span<const OptionRow> option_table() { return kTable; }

std::string help_text(const char* program) {
  std::string ignored;
  for (const OptionRow& row : kTable) {
    if (row.kind != OptionKind::ignored) continue;
    ignored += (ignored.empty() ? "" : ", ") + std::string("-") + static_cast<char>(row.key) + "/--" + row.name;
  }
  return std::string("Usage: ") + program + " [options]\n\n" +
         wrapped(
             "Measures a collective of Tutti and checks its results. The options, the table and the bandwidths (algbw "
             "and busbw, in GB/s) are those of nccl-tests. time is the mean of a call in us; #wrong counts "
             "wrong elements (under compression, error is the relative error). Exits with 0 if all results are "
             "right, else with 1, or 2 if it could not measure.",
             0, 0) +
         section("Options of nccl-tests:", kTests) + section("Further options:", kTutti) + "\n" +
         wrapped("Accepted and ignored options of nccl-tests: " + ignored + ". Others are errors.", 2, 0) +
         "\nExamples:\n" + "  " + program + " --ranks 2 -b 8 -e 256M -f 4\n  " + program +
         " --hosts node1:2,node2:2 -b 64K -e 64M -J out.json\n\n" +
         wrapped(
             "--hosts needs this program at the same path on all hosts, and the same current directory. It passes on "
             "the variables TUTTI_*, NCCL_*, UCX_* and LD_LIBRARY_PATH. `tutti doctor` lists the variables that Tutti "
             "honors.",
             0, 0);
}

}  // namespace perf
