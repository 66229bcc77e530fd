#include "tools/tutti/usual_machine.h"

#include "src/base/instructions.h"

namespace tutti::tool {

Machine usual_machine(bool on_devices) {
  if (on_devices) return machine_of_devices();
  Machine machine = machine_of_hosts();
  set_coding_rates(machine.costs, widest_instructions());
  return machine;
}

void set_link(Machine& machine, double gbits_per_s) {
  Level& network = machine.levels[1];
  network.member_gbytes_per_s = network.rank_gbytes_per_s = gbits_per_s / 8;
}

}  // namespace tutti::tool
