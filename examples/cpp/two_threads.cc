// Two ranks that are threads of one process gather each other's vectors.
#include <tutti/tutti.h>

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr int kRanks = 2;
constexpr int kCount = 1000;

void check(tutti_status status) {
  if (status == tutti_ok) return;
  std::fprintf(stderr, "%s: %s\n", tutti_status_name(status), tutti_last_error(nullptr));
  std::exit(1);
}

// The whole life of a rank: destroying waits for the others, so each does it in its own thread.
bool run(tutti_comm comm) {
  int rank = 0;
  check(tutti_comm_rank(comm, &rank));
  const std::vector<int> mine(kCount, 10 + rank);
  std::vector<int> all(kRanks * kCount);
  check(tutti_all_gather(mine.data(), all.data(), kCount, tutti_int32, comm, nullptr));
  check(tutti_comm_destroy(comm));

  bool right = true;
  for (int i = 0; i < kRanks * kCount; ++i) right = right && all[i] == 10 + i / kCount;
  std::printf("rank %d of %d: the blocks are %s\n", rank, kRanks, right ? "right" : "wrong");
  return right;
}

}  // namespace

int main() {
  tutti_comm comms[kRanks];
  check(tutti_comm_create_all(kRanks, nullptr, comms));

  bool right[kRanks] = {};
  std::vector<std::thread> threads;
  for (int i = 0; i < kRanks; ++i) threads.emplace_back([&, i] { right[i] = run(comms[i]); });
  for (std::thread& thread : threads) thread.join();
  return right[0] && right[1] ? 0 : 1;
}
