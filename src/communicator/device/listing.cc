#include "src/communicator/device/listing.h"

#include <utility>

#include "src/base/config.h"
#include "src/communicator/call/carriers.h"
#include "src/communicator/peers/direct_slots.h"
#include "src/executor/thread_block/device.h"

namespace tutti {
namespace {

std::string through_host(const std::string& why) { return "through memory of the host: " + why; }

void add_ways(const std::shared_ptr<Device>& device, std::vector<std::string>& list) {
  const std::string& name = device->traits().name;
  bool requested = false;
  const auto ask = [&](const DeviceRegion& block) -> Result<RegisteredRegion> {
    requested = true;
    for (RegionAccess& way : describe_region_access_by_carriers(block)) {
      const std::string how = way.how.ok() ? way.how.value() : through_host(std::move(way.how).status().message());
      std::string& line = list.emplace_back(name);
      line.append(", ").append(way.by).append(": ").append(how);
    }
    return unsupported("it was only asked");
  };
  Result<RegisteredRegion> none = take_direct_slots(device, {1, config().gpudirect}, ask);
  if (!requested) list.push_back(name + ": " + through_host(std::move(none).status().message()));
}

// Calls `visit` with each device; with null and the reason if it cannot be used.
template <typename Visit>
void for_each_device(Visit&& visit) {
  for (int ordinal = 0;; ++ordinal) {
    Result<std::shared_ptr<Device>> device = find_device(ordinal);
    const std::shared_ptr<Device> usable = device.ok() ? device.value() : nullptr;
    const Status why = std::move(device).status();
    if (why.code() == Code::invalid_argument) return;  // Past the last device.
    visit(usable, why);
  }
}

}  // namespace

Result<std::vector<std::string>> list_devices() {
  TUTTI_TRY(current_device());  // Returns the reason if there is no device.
  std::vector<std::string> list;
  for_each_device([&](const std::shared_ptr<Device>& device, const Status& why) {
    list.push_back(device != nullptr ? device->traits().name : why.message());
  });
  return list;
}

std::vector<std::string> list_gpudirect() {
  std::vector<std::string> list;
  if (!current_device().ok()) return list;
  for_each_device([&](const std::shared_ptr<Device>& device, const Status&) {
    if (device != nullptr) add_ways(device, list);
  });
  return list;
}

}  // namespace tutti
