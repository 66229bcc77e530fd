// Machine model for predictions: costs, and the links of each level of groups.
#pragma once

#include <vector>

#include "src/base/instructions.h"
#include "src/model/costs.h"

namespace tutti {

// Links among the members of a group. Rates are per direction, full duplex, in 1e9 bytes of data and headers per
// second.
struct Level {
  LinkClass links = LinkClass::memory;
  double member_gbytes_per_s = 0;  // Rate at which one member sends to others of its group. Level 0: a rank to its
                                   // host; level 1: all ranks of a host to other hosts.
  double rank_gbytes_per_s = 0;    // Rate at which one rank can send, out of member_gbytes_per_s.
  double latency_us = 0;           // One-way latency of the links alone.
  double message_us = 0;           // Time of a rank per message sent, in addition to Costs::step_us.
  double receive_us = 0;           // Time of a rank per message received.
  // Rate at which a rank sends and receives such messages; 0: Costs::channel_gbytes_per_s.
  double work_gbytes_per_s = 0;
  double stall_us = 0;      // Time lost on each wait in the middle of a chunk.
  double handover_us = 0;   // Replaces the hop if ranks share cores: time until the waiting rank gets a core.
  double passed_on_us = 0;  // Replaces the hop on paths from or to a root, with back-to-back calls.
  double woken_us = 0;      // Replaces zero cost: added for each of several messages that are awaited at once.
};

struct Machine {
  Costs costs;
  std::vector<Level> levels;  // [0]: within hosts. [i]: between the groups of Problem::groups[i - 1].
  double ranks_per_core = 1;  // At least 1.
};

// Sets the encoding and decoding rates of a CPU with these instructions.
void set_coding_rates(Costs& costs, Instructions instructions);

// Ranks in host memory with AVX-512, one core per rank, and TCP between hosts. Parameters: docs/design/tuning.md.
const Machine& machine_of_hosts();
// Ranks on H100 GPUs of one host, with 400 Gbit/s per GPU between hosts. Predicted, not measured.
const Machine& machine_of_devices();

}  // namespace tutti
