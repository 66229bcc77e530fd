// Parameters of a test call.
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

// Ranks that pass one buffer as input and output: none, all or some.
enum class InPlaceUse : std::uint8_t { out_of_place, in_place, mixed };

enum class Forms : std::uint8_t { as_proved, one_way };

struct TestCall {
  std::vector<Plan> plans[2];  // Plans of all ranks: [0] out of place, [1] in place or empty if not supported.
  InPlaceUse in_place = InPlaceUse::out_of_place;
  Forms forms = Forms::as_proved;
  Protocol protocol = Protocol::simple;
  Loop loop;                  // loop.slots must be a power of two.
  std::uint16_t granule = 1;  // Granule in elements.
  std::uint64_t count = 1;    // Elements per block.
  std::uint32_t element_bytes = 8;
  bool averages = false;         // Reductions compute averages instead of sums.
  bool straight = false;         // Compile the schedule before the call, if possible.
  Engine* engine = nullptr;      // Runs the ranks' thread blocks; null: ranks run on the CPU.
  std::uint32_t channels = 1;    // Number of channels.
  std::uint32_t operations = 3;  // Number of consecutive operations, each with its own buffers.
  // Type and reduction of each operation; all types must have the same size. Empty: sums or averages of uint64. Only
  // without tasks do expected results exist.
  std::vector<FoldTask> tasks;
};

// Returns the task of a rank's operation.
inline FoldTask task_of(const TestCall& test_call, std::uint32_t operation, Rank rank) {
  FoldTask task;
  task.type = DataType::uint64;
  task.reduction = test_call.averages ? Reduction::avg : Reduction::sum;
  if (!test_call.tasks.empty()) task = test_call.tasks[operation];
  task.ranks = static_cast<Rank>(test_call.plans[0].size());
  task.scale = 1.75 - 0.5 * rank;  // Ranks have different factors.
  task.integer_scale = -3 + 2 * std::int64_t{rank};
  return task;
}

// Returns true if steps with one source always copy it unchanged.
inline bool copies(const TestCall& test_call) {
  return !test_call.averages && std::none_of(test_call.tasks.begin(), test_call.tasks.end(), [](const FoldTask& task) {
    return task.reduction == Reduction::avg || task.reduction == Reduction::pre_mul_sum;
  });
}

// Returns the number of elements that fit a slot.
std::uint64_t slot_elements(const TestCall& test_call);

}  // namespace tutti::test
