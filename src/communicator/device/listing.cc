#include "src/communicator/device/listing.h"

#include <utility>

#include "src/executor/team/device.h"

namespace tutti {

Result<std::vector<std::string>> list_devices() {
  TUTTI_TRY(current_device());  // Knows why there is none at all.
  std::vector<std::string> list;
  for (int ordinal = 0;; ++ordinal) {
    Result<std::shared_ptr<Device>> device = find_device(ordinal);
    if (device.ok()) {
      list.push_back(device.value()->traits().name);
      continue;
    }
    const Status status = std::move(device).status();
    if (status.code() == Code::invalid_argument) return list;  // The one after the last.
    list.push_back(status.message());
  }
}

}  // namespace tutti
