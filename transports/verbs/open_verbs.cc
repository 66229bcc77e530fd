#include "transports/verbs.h"

#include <sys/resource.h>

#include "transports/half_lane.h"
#include "transports/verbs/verbs_carrier.h"

namespace tutti {
namespace {

class VerbsSource final : public CarrierSource {
 public:
  VerbsSource(std::vector<VerbsPort> ports, VerbsOptions options)
      : ports_(std::move(ports)), options_(std::move(options)) {}

  Result<std::unique_ptr<Carrier>> make() override { return VerbsCarrier::create(ports_, options_); }

 private:
  std::vector<VerbsPort> ports_;
  VerbsOptions options_;
};

constexpr std::size_t kRegisteredBytes = 64 << 20;  // More than lanes of a few ranks need.

// If locked memory is limited, only a trial registration shows whether the limit suffices for this process.
Status check_locked_memory(const std::vector<VerbsPort>& ports) {
  rlimit locked = {};
  if (::getrlimit(RLIMIT_MEMLOCK, &locked) == 0 && locked.rlim_cur == RLIM_INFINITY) return {};
  const LaneMemory tried = HalfLane::allocate(kRegisteredBytes);
  return ports.front().device->register_memory(tried.get(), kRegisteredBytes, RegionUse::remote).status();
}

Result<std::vector<VerbsPort>> usable_ports(const VerbsOptions& options) {
  std::vector<VerbsPort> ports = TUTTI_TRY(find_verbs_ports(options));
  if (options.use == VerbsUse::automatic) TUTTI_CHECK_OK(check_locked_memory(ports));
  return ports;
}

}  // namespace

Result<std::unique_ptr<CarrierSource>> open_verbs(const VerbsOptions& options) {
  std::vector<VerbsPort> ports = TUTTI_TRY(usable_ports(options));
  return std::unique_ptr<CarrierSource>(std::make_unique<VerbsSource>(std::move(ports), options));
}

Result<std::string> describe_verbs(const VerbsOptions& options) {
  const std::vector<VerbsPort> ports = TUTTI_TRY(usable_ports(options));
  std::string list;
  for (const VerbsPort& port : ports) list += (list.empty() ? "" : "; ") + port.describe();
  return list;
}

Result<std::vector<RegionAccess>> describe_region_access_by_verbs(const VerbsOptions& options,
                                                                  const DeviceRegion& region) {
  const std::vector<VerbsPort> ports = TUTTI_TRY(find_verbs_ports(options));
  std::vector<RegionAccess> accesses;
  for (const VerbsPort& port : ports) {
    if (!accesses.empty() && accesses.back().by == port.device->name()) continue;
    Result<DeviceMemoryRegion> made = port.device->register_region(region);
    Result<std::string> how = made.ok() ? Result(made.value().how) : std::move(made).status();
    accesses.push_back({port.device->name(), std::move(how)});
  }
  return accesses;
}

}  // namespace tutti
