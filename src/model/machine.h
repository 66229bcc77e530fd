// What the ranks of a communicator run on, as far as predictions need it: costs, and the links of each level of groups.
#pragma once

#include <vector>

#include "src/base/instructions.h"
#include "src/model/costs.h"

namespace tutti {

// Links among the members of one group. Rates are each way at once, in 1e9 bytes of data and headers a second.
struct Level {
  LinkClass links = LinkClass::memory;
  double member_gbytes_per_s = 0;  // What one member can send to others of its group: a rank of its host (level 0), all
                                   // ranks of a host together to other hosts (level 1).
  double rank_gbytes_per_s = 0;    // What one rank can of that.
  double latency_us = 0;           // One way, of the links alone.
  double message_us = 0;           // What a rank does for a message that it sends there, beside Costs::step_us;
  double receive_us = 0;           // and for one that it receives.
  double work_gbytes_per_s = 0;    // Of such messages it makes and takes in; 0: Costs::channel_gbytes_per_s.
  double stall_us = 0;             // That it loses whenever it has to wait in the middle of a chunk.
  double handover_us = 0;          // Instead of a hop, where ranks share cores: until who waits has one.
  double passed_on_us = 0;         // Likewise, on a way from or to a root, where calls follow each other.
  double woken_us = 0;             // Instead of nothing, by each of several messages that are waited for at once.
};

struct Machine {
  Costs costs;
  std::vector<Level> levels;  // [0]: inside hosts. [i]: between the groups of Problem::groups[i - 1].
  double ranks_per_core = 1;  // 1 or more.
};

// What a CPU with these instructions encodes and decodes.
void set_coding_rates(Costs& costs, Instructions instructions);

// Ranks in host memory with AVX-512, each with a core of its own, and TCP between hosts. Figures:
// docs/design/tuning.md.
const Machine& machine_of_hosts();
// Ranks on GPUs of one host, and 400 Gbit/s for each between hosts. Estimates.
const Machine& machine_of_devices();

}  // namespace tutti
