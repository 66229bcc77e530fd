#include "src/executor/proxy/near_nic.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "src/base/cpu_list.h"
#include "src/base/own_cpus.h"

namespace tutti {

std::optional<int> node_of(const std::string& interface_name, const std::string& sysfs) {
  if (interface_name.empty()) return std::nullopt;
  std::ifstream file(sysfs + "/class/net/" + interface_name + "/device/numa_node");
  int node = -1;
  if (!(file >> node) || node < 0) return std::nullopt;
  return node;
}

std::vector<std::uint32_t> cpus_of(int node, const std::string& sysfs) {
  std::ifstream file(sysfs + "/devices/system/node/node" + std::to_string(node) + "/cpulist");
  std::string list;
  std::getline(file, list);
  Result<std::vector<std::uint32_t>> cpus = cpus_of_list(list);
  return cpus.ok() ? std::move(cpus).value() : std::vector<std::uint32_t>();
}

void run_on(const std::vector<std::uint32_t>& cpus) {
  std::vector<std::uint32_t> wanted;
  std::ranges::set_intersection(own_cpus(), cpus, std::back_inserter(wanted));
  if (wanted.empty()) return;
  std::vector<cpu_set_t> sets(wanted.back() / CPU_SETSIZE + 1);
  const std::size_t bytes = sets.size() * sizeof(cpu_set_t);
  for (const std::uint32_t cpu : wanted) CPU_SET_S(cpu, bytes, sets.data());
  (void)::sched_setaffinity(0, bytes, sets.data());
}

}  // namespace tutti
