#include "src/executor/proxy/near_nic.h"

#include <sched.h>

#include <fstream>
#include <sstream>

namespace tutti {

std::optional<int> node_of(const std::string& interface_name, const std::string& sysfs) {
  if (interface_name.empty()) return std::nullopt;
  std::ifstream file(sysfs + "/class/net/" + interface_name + "/device/numa_node");
  int node = -1;
  if (!(file >> node) || node < 0) return std::nullopt;
  return node;
}

// "0-3,8,10-11"
std::vector<int> cpus_of(int node, const std::string& sysfs) {
  std::ifstream file(sysfs + "/devices/system/node/node" + std::to_string(node) + "/cpulist");
  std::vector<int> cpus;
  std::string part;
  while (std::getline(file, part, ',')) {
    std::istringstream text(part);
    int first = 0, last = 0;
    char dash = 0;
    if (!(text >> first)) break;
    if (!(text >> dash >> last) || dash != '-') last = first;
    for (int cpu = first; cpu <= last && cpu < CPU_SETSIZE; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

void run_on(const std::vector<int>& cpus) {
  cpu_set_t allowed, wanted;
  CPU_ZERO(&wanted);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  for (const int cpu : cpus) {
    if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &wanted);
  }
  if (CPU_COUNT(&wanted) > 0) (void)::sched_setaffinity(0, sizeof wanted, &wanted);
}

}  // namespace tutti
