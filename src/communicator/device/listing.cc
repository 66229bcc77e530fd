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
    for (RegionAccess& way : reach_by_carriers(block)) {
      const std::string how = way.how.ok() ? way.how.value() : through_host(std::move(way.how).status().message());
      std::string& line = list.emplace_back(name);
      line.append(", ").append(way.by).append(": ").append(how);
    }
    return unsupported("it was only asked");
  };
  Result<RegisteredRegion> none = take_direct_slots(device, {1, config().gpudirect}, ask);
  if (!requested) list.push_back(name + ": " + through_host(std::move(none).status().message()));
}

}  // namespace

Result<std::vector<std::string>> list_devices() {
  TUTTI_TRY(current_device());  // Returns the reason if there is no device.
  std::vector<std::string> list;
  for (int ordinal = 0;; ++ordinal) {
    Result<std::shared_ptr<Device>> device = find_device(ordinal);
    if (device.ok()) {
      list.push_back(device.value()->traits().name);
      continue;
    }
    const Status status = std::move(device).status();
    if (status.code() == Code::invalid_argument) return list;  // Past the last device.
    list.push_back(status.message());
  }
}

std::vector<std::string> list_gpudirect() {
  std::vector<std::string> list;
  if (!current_device().ok()) return list;
  for (int ordinal = 0;; ++ordinal) {
    Result<std::shared_ptr<Device>> device = find_device(ordinal);
    if (device.ok()) {
      add_ways(device.value(), list);
    } else if (std::move(device).status().code() == Code::invalid_argument) {
      return list;
    }
  }
}

}  // namespace tutti
