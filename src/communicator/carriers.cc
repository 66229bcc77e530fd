#include "src/communicator/carriers.h"

#include <array>

#include "src/base/config.h"
#include "transports/ucx.h"
#include "transports/verbs.h"

namespace tutti {
namespace {

struct CarrierKind {
  const char* name;
  Result<std::unique_ptr<CarrierSource>> (*open)();
  Result<std::string> (*describe)();
};

// One line for each.
constexpr std::array kKinds = {
    CarrierKind{"ucx", open_ucx, describe_ucx},
    CarrierKind{"verbs", [] { return open_verbs(VerbsOptions::from(config())); },
                [] { return describe_verbs(VerbsOptions::from(config())); }},
};

}  // namespace

std::vector<std::string> transport_names() {
  std::vector<std::string> names = {"shm", "tcp"};
  for (const CarrierKind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

std::vector<std::pair<std::string, Result<std::string>>> describe_carriers() {
  std::vector<std::pair<std::string, Result<std::string>>> all;
  for (const CarrierKind& kind : kKinds) all.emplace_back(kind.name, kind.describe());
  return all;
}

Result<std::unique_ptr<CarrierSource>> open_carriers(const std::string& transport) {
  for (const CarrierKind& kind : kKinds) {
    if (transport == kind.name) return kind.open();
  }
  return std::unique_ptr<CarrierSource>();
}

}  // namespace tutti
