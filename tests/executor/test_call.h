// One shape of call, and how to run it.
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
  std::vector<Plan> plans[2];  // All ranks, out of place and in place; the latter is empty if unsupported.
  Way way = Way::out_of_place;
  Forms forms = Forms::as_proved;
  Protocol protocol = Protocol::simple;
  Loop loop;                  // Slots of each lane, a power of two.
  std::uint16_t granule = 1;  // Elements.
  std::uint64_t count = 1;    // Elements of every block.
  std::uint32_t element_bytes = 8;
  bool averages = false;         // Reductions: the average instead of the sum.
  bool straight = false;         // Compiles the schedule beforehand, if possible.
  Engine* engine = nullptr;      // Runs the ranks' thread blocks; null: each rank is a CPU.
  std::uint32_t channels = 1;    // Number of thread blocks.
  std::uint32_t operations = 3;  // Consecutive operations with buffers of their own and no pause in between.
  // The type and reduction of each operation, all with elements of the same size. Empty: uint64, in sums or averages.
  // Expected results exist for those alone.
  std::vector<FoldTask> tasks;
};

// The task of a rank's operation.
inline FoldTask task_of(const TestCall& test_call, std::uint32_t operation, Rank rank) {
  FoldTask task;
  task.type = DataType::uint64;
  task.reduction = test_call.averages ? Reduction::avg : Reduction::sum;
  if (!test_call.tasks.empty()) task = test_call.tasks[operation];
  task.ranks = static_cast<Rank>(test_call.plans[0].size());
  task.scale = 1.75 - 0.5 * rank;  // Each rank multiplies by its own factor.
  task.integer_scale = -3 + 2 * std::int64_t{rank};
  return task;
}

// Whether steps with one source always copy it unchanged.
inline bool copies(const TestCall& test_call) {
  return !test_call.averages && std::none_of(test_call.tasks.begin(), test_call.tasks.end(), [](const FoldTask& task) {
    return task.reduction == Reduction::avg || task.reduction == Reduction::pre_mul_sum;
  });
}

// Elements that fit a slot.
std::uint64_t slot_elements(const TestCall& test_call);

}  // namespace tutti::test
