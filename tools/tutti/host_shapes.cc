#include "tools/tutti/host_shapes.h"

#include <algorithm>

namespace tutti::tool {
namespace {

// Returns hosts with these sizes in rotation. The last host has the remaining ranks.
std::vector<Rank> hosts_of(const std::vector<Rank>& sizes, Rank ranks) {
  std::vector<Rank> hosts;
  for (Rank left = ranks; left > 0; left -= hosts.back()) {
    hosts.push_back(std::min(sizes[hosts.size() % sizes.size()], left));
  }
  return hosts;
}

}  // namespace

const char* const kHostShapes = "2 hosts; hosts of 2, 4, 8, and alternately 3 and 5 ranks; hosts of 4 ranks in 2 racks";

std::vector<Groups> host_shapes(Rank ranks) {
  std::vector<Groups> shapes;
  for (const std::vector<Rank>& sizes : {std::vector<Rank>{(ranks + 1) / 2}, {2}, {4}, {8}, {3, 5}}) {
    const Groups shape = {hosts_of(sizes, ranks)};
    const bool is_new = std::find(shapes.begin(), shapes.end(), shape) == shapes.end();
    if (is_new && shape[0].size() > 1) shapes.push_back(shape);
  }
  const std::vector<Rank> hosts = hosts_of({4}, ranks);
  const auto count = static_cast<Rank>(hosts.size());
  if (count >= 4) shapes.push_back({hosts, {(count + 1) / 2, count / 2}});
  return shapes;
}

}  // namespace tutti::tool
