// All ranks of a few calls, each a thread with an interpreter of its own, over lanes in memory that is mapped once: so
// ThreadSanitizer sees both ends of every lane.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "src/executor/lane_io.h"
#include "src/plan/lanes.h"
#include "transports/shm/shm_transport.h"

namespace tutti {

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
  std::uint32_t operations = 3;  // In a row, with buffers of their own and no pause in between.
};

// What a slot holds.
std::uint64_t slot_elements(Protocol protocol);

class Fleet {
 public:
  explicit Fleet(std::uint64_t seed) : random_(seed) {}

  // Empty if all ranks end with exactly what they must, and with their input as it was.
  std::string run(const Voyage& voyage);

  // How many lanes of a form and protocol have been sailed.
  std::uint32_t lanes(LaneForm form, Protocol protocol) const {
    const auto found = lanes_.find({form, protocol});
    return found == lanes_.end() ? 0 : found->second;
  }

 private:
  std::mt19937_64 random_;
  ShmTransport transport_{0};  // One rank's: it owns all memory.
  std::map<std::pair<LaneForm, Protocol>, std::uint32_t> lanes_;
};

}  // namespace tutti
