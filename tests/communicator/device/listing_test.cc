// list_gpudirect() for the GPU emulator: how each endpoint between hosts accesses device memory.
#include "src/communicator/device/listing.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "src/base/config.h"
#include "src/communicator/call/carriers.h"

namespace tutti::test {
namespace {

// UCX must be listed with the setting that enables its access, and each RDMA device as able to access device memory.
TEST(GpuDirectListing, ReportsReachOfEachNic) {
  const std::vector<std::string> list = list_gpudirect();
  const auto of = [&](const std::string& by) {
    const auto found = std::find_if(list.begin(), list.end(), [&](const std::string& line) {
      return line.starts_with("threads of the host (device 0), " + by + ": ");
    });
    return found == list.end() ? std::string() : *found;
  };
  for (auto& [name, found] : describe_carriers()) {
    const bool there = found.ok();
    const std::string shown = there ? found.value() : "";
    if (name == "ucx") {
      EXPECT_EQ(there, of(name).ends_with("through memory of the host: UCX may block on CUDA: set "
                                          "TUTTI_GPUDIRECT=on to allow it"))
          << of(name);
    }
    for (const char* device : {"rxe0", "rxe1"}) {
      if (name == "verbs" && shown.find(device) != std::string::npos) {
        EXPECT_TRUE(of(device).ends_with(": by its address") || of(device).ends_with(": by dma-buf")) << of(device);
      }
    }
  }
}

}  // namespace
}  // namespace tutti::test
