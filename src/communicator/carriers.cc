#include "src/communicator/carriers.h"

#include <span>

namespace tutti {
namespace {

struct CarrierKind {
  const char* name;
  Result<std::unique_ptr<CarrierSource>> (*open)();
};

// One line for each.
std::span<const CarrierKind> kinds() { return {}; }

}  // namespace

std::vector<std::string> transport_names() {
  std::vector<std::string> names = {"shm", "tcp"};
  for (const CarrierKind& kind : kinds()) names.emplace_back(kind.name);
  return names;
}

Result<std::unique_ptr<CarrierSource>> open_carriers(const std::string& transport) {
  for (const CarrierKind& kind : kinds()) {
    if (transport == kind.name) return kind.open();
  }
  return std::unique_ptr<CarrierSource>();
}

}  // namespace tutti
