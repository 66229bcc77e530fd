#include "tools/tutti/names.h"

#include "algorithms/catalogue.h"

namespace tutti::tool {

Status no_such_algorithm(const std::string& algorithm, std::optional<Collective> collective) {
  if (collective) {
    return invalid_argument("no algorithm '" + algorithm + "' of " + name(*collective) + "; there are " +
                            names_of(*collective));
  }
  return invalid_argument("no algorithm '" + algorithm + "'; there are" + all_algorithms());
}

std::string all_algorithms() {
  std::string all;
  for (std::uint32_t i = 0; i < kCollectives; ++i) {
    const auto each = static_cast<Collective>(i);
    const std::string heading = std::string(name(each)) + ":";
    all += "\n  " + heading + std::string(16 - heading.size(), ' ') + names_of(each);
  }
  return all;
}

}  // namespace tutti::tool
