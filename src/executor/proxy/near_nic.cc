#include "src/executor/proxy/near_nic.h"

#include <sched.h>

#include <cstdint>
#include <fstream>

#include "src/base/cpu_list.h"

namespace tutti {

std::optional<int> node_of(const std::string& interface_name, const std::string& sysfs) {
  if (interface_name.empty()) return std::nullopt;
  std::ifstream file(sysfs + "/class/net/" + interface_name + "/device/numa_node");
  int node = -1;
  if (!(file >> node) || node < 0) return std::nullopt;
  return node;
}

std::vector<int> cpus_of(int node, const std::string& sysfs) {
  std::ifstream file(sysfs + "/devices/system/node/node" + std::to_string(node) + "/cpulist");
  std::string list;
  std::getline(file, list);
  const Result<std::vector<std::uint32_t>> cpus = cpus_of_list(list);
  if (!cpus.ok()) return {};
  return {cpus.value().begin(), cpus.value().end()};
}

void run_on(const std::vector<int>& cpus) {
  cpu_set_t allowed, wanted;
  CPU_ZERO(&wanted);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  for (const int cpu : cpus) {
    if (cpu < CPU_SETSIZE && CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &wanted);
  }
  if (CPU_COUNT(&wanted) > 0) (void)::sched_setaffinity(0, sizeof wanted, &wanted);
}

}  // namespace tutti
