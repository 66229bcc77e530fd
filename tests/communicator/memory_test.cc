// Ranks that run out of memory, at any point of a call: the peers are told, as of any failure.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <new>
#include <optional>

#include "tests/communicator/calls.h"
#include "tests/communicator/ranks.h"

namespace {

thread_local std::uint64_t allocations_until_refusal = 0;  // 0: none is refused.

}  // namespace

// Not inlined, neither these nor those that free: GCC would see a free() of what some other new has made.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  const bool refused = allocations_until_refusal > 0 && --allocations_until_refusal == 0;
  void* memory = refused ? nullptr : std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return std::malloc(bytes);  // Has a way out.
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace tutti {
namespace {

// Refuses this thread one allocation, the `which`-th from now on.
class Refusal {
 public:
  explicit Refusal(std::uint64_t which) { allocations_until_refusal = which; }
  ~Refusal() { allocations_until_refusal = 0; }
  Refusal(const Refusal&) = delete;
  Refusal& operator=(const Refusal&) = delete;
  bool came() const { return allocations_until_refusal == 0; }
};

constexpr std::uint64_t kStride = 7;  // Not each of some hundred allocations is tried.

// Whether the call of rank 1 allocates so often.
bool lacks_memory_in_a_call(std::uint64_t which) {
  Communicators ranks = make_ranks(2);
  bool came = false;
  const auto statuses = on_all(ranks, [&](Communicator& communicator) {
    std::vector<float> buffer(128);
    Call call = all_reduce(buffer);
    call.collective = Collective::all_to_all;  // In place it works on a copy.
    call.count = 64;
    if (communicator.rank() == 0) return communicator.run(call);
    const Refusal refusal(which);
    Status status = communicator.run(call);
    came = refusal.came();
    return status;
  });
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), came ? Code::system : Code::ok) << which;
    EXPECT_EQ(status.message().starts_with("out of memory"), came) << which << ": " << status.message();
  }
  return came;
}

TEST(Memory, ThatACallLacksIsToldToAll) {
  std::uint64_t which = 1;
  while (lacks_memory_in_a_call(which)) which += kStride;
  EXPECT_GT(which, 10 * kStride);  // Such a call makes a plan and lanes, and has them proved.
}

// The same of a call that is driven beside others.
bool lacks_memory_step_by_step(std::uint64_t which, Kind kind) {
  Communicators ranks = make_ranks(2);
  std::vector<std::vector<float>> sums(2, std::vector<float>(64));
  std::vector<std::vector<int>> messages(2, std::vector<int>(64));
  const auto call = [&](Rank rank) {
    if (kind == Kind::collective) return all_reduce(sums[rank]);
    return message(rank == 0 ? Kind::send : Kind::recv, 1 - rank, messages[rank]);
  };
  auto peer = ranks[0]->start(call(0));
  EXPECT_TRUE(peer.ok());
  std::optional<Refusal> refusal(which);
  const auto own = ranks[1]->start(call(1));
  bool came = refusal->came();
  for (bool done = false; own.ok() && !came && !done;) {
    const auto advanced = own.value()->advance();
    came = refusal->came();
    done = !advanced.ok() || advanced.value();
    if (!came) (void)peer.value()->advance();
  }
  refusal.reset();
  EXPECT_EQ(ranks[0]->failure().code(), came ? Code::system : Code::ok) << which;
  return came;
}

TEST(Memory, ThatAnOperationLacksIsToldToAll) {
  for (const Kind kind : {Kind::collective, Kind::recv}) {
    std::uint64_t which = 1;
    while (lacks_memory_step_by_step(which, kind)) ++which;
    EXPECT_GT(which, 10U);
  }
}

}  // namespace
}  // namespace tutti
