// One shape of call, and how it is run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "src/executor/thread_block/operands.h"
#include "src/plan/loop.h"
#include "src/plan/plan.h"
#include "transports/lane_view.h"

namespace tutti::test {

class Engine;

// Which ranks pass one buffer as input and output.
enum class Way : std::uint8_t { out_of_place, in_place, mixed };

enum class Forms : std::uint8_t { as_proved, one_way };

struct TestCall {
  std::vector<Plan> plans[2];  // Of all ranks, out of place and in place; the latter empty where there are none.
  Way way = Way::out_of_place;
  Forms forms = Forms::as_proved;
  Protocol protocol = Protocol::simple;
  Loop loop;                  // Slots: of each lane, a power of two.
  std::uint16_t granule = 1;  // Elements.
  std::uint64_t count = 1;    // Of every block, in elements.
  std::uint32_t element_bytes = 8;
  bool averages = false;         // Reductions: the average instead of the sum.
  bool straight = false;         // Lays the buffers out beforehand, where that can be done.
  Engine* engine = nullptr;      // Runs the ranks' thread blocks; null: each rank is a CPU.
  std::uint32_t channels = 1;    // Of thread blocks.
  std::uint32_t operations = 3;  // In a row, with buffers of their own and no pause in between.
  // What each of them reduces, all with elements of the same size. Empty: uint64, in sums or averages. Expected numbers
  // are known of those alone.
  std::vector<FoldTask> tasks;
};

// What a rank's operation is to do.
inline FoldTask task_of(const TestCall& test_call, std::uint32_t operation, Rank rank) {
  FoldTask task;
  task.type = DataType::uint64;
  task.reduction = test_call.averages ? Reduction::avg : Reduction::sum;
  if (!test_call.tasks.empty()) task = test_call.tasks[operation];
  task.ranks = static_cast<Rank>(test_call.plans[0].size());
  task.scale = 1.75 - 0.5 * rank;  // Each rank multiplies by a number of its own.
  task.integer_scale = -3 + 2 * std::int64_t{rank};
  return task;
}

// Whether what has one source is always copied as it is.
inline bool copies(const TestCall& test_call) {
  return !test_call.averages && std::none_of(test_call.tasks.begin(), test_call.tasks.end(), [](const FoldTask& task) {
    return task.reduction == Reduction::avg || task.reduction == Reduction::pre_mul_sum;
  });
}

// What a slot holds.
std::uint64_t slot_elements(const TestCall& test_call);

}  // namespace tutti::test
