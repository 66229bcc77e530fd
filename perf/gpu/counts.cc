// gpu_counts COMPETITOR BYTES [BLOCKS]: runs one all-reduce of 8 ranks of one process that share a GPU, and checks the
// result. COMPETITOR is an algorithm of Tutti, or "hand" for the hand-written two-shot, which has BLOCKS thread blocks
// per rank. counts.py counts what its kernel executes.
#include <cstdlib>
#include <cstring>

#include "perf/gpu/competitors.h"
#include "perf/gpu/timer.h"
#include "perf/tool/fail.h"

namespace perf {
namespace {

constexpr int kRanks = 8;

bool is_right(const char* name, std::size_t bytes, int blocks) {
  const Timer timer;
  Buffers buffers(kRanks, bytes, timer.stream());
  const bool hand = std::strcmp(name, "hand") == 0;
  const auto competitor = hand ? by_hand(buffers, blocks) : tutti_all_reduces(buffers, name);
  competitor->enqueue(bytes / sizeof(float), timer.stream());
  timer.synchronize();
  competitor->settled();
  return buffers.wrong(bytes / sizeof(float), timer.stream()) == 0;
}

}  // namespace
}  // namespace perf

int main(int argc, char** argv) {
  const unsigned long long bytes = argc >= 3 ? std::strtoull(argv[2], nullptr, 10) : 0;
  const int blocks = argc >= 4 ? std::atoi(argv[3]) : 1;
  if (bytes < sizeof(float) || blocks < 1) perf::fail("usage: gpu_counts COMPETITOR BYTES [BLOCKS]; at least 4 bytes");
  if (!perf::is_right(argv[1], bytes, blocks)) perf::fail("%s: wrong elements", argv[1]);
  return 0;
}
