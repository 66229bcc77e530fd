// Filter for ports of RDMA devices, with the syntax of NCCL_IB_HCA: "mlx5,rxe0:1" lists name prefixes, "=mlx5_0" exact
// names, "^..." and "^=..." exclude; ":1" selects one port of a device.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

class HcaFilter {
 public:
  explicit HcaFilter(std::string_view list);  // Empty: all ports.

  bool admits(std::string_view device, std::uint32_t port) const;
  // True if the list includes the port explicitly, rather than by excluding others.
  bool names(std::string_view device, std::uint32_t port) const;

 private:
  struct Entry {
    std::string device;
    std::uint32_t port = 0;  // 0: any.
  };
  bool lists(std::string_view device, std::uint32_t port) const;

  std::vector<Entry> entries_;
  bool exact_ = false;
  bool excludes_ = false;
};

}  // namespace tutti
