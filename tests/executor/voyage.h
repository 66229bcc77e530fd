// One shape of call, and how it is run.
#pragma once

#include <cstdint>
#include <vector>

#include "src/plan/loop.h"
#include "src/plan/plan.h"
#include "transports/lane_view.h"

namespace tutti {

class Engine;

// Which ranks pass one buffer as input and output.
enum class Way : std::uint8_t { out_of_place, in_place, mixed };

enum class Forms : std::uint8_t { as_proved, one_way };

struct Voyage {
  std::vector<Plan> plans[2];  // Of all ranks, out of place and in place; the latter empty where there are none.
  Way way = Way::out_of_place;
  Forms forms = Forms::as_proved;
  Protocol protocol = Protocol::bulk;
  Loop loop;                     // Slots: of each lane, a power of two.
  std::uint32_t granule = 1;     // Elements.
  std::uint64_t count = 1;       // Of every block, in elements of 8 bytes.
  bool averages = false;         // Reductions: the average instead of the sum.
  bool straight = false;         // Lays the buffers out beforehand, where that can be done.
  Engine* engine = nullptr;      // Runs the ranks' teams; null: each rank is a CPU.
  std::uint32_t channels = 1;    // Of teams.
  std::uint32_t operations = 3;  // In a row, with buffers of their own and no pause in between.
};

// What a slot holds.
std::uint64_t slot_elements(const Voyage& voyage);

}  // namespace tutti
