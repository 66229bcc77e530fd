// Which ports of RDMA devices a list admits, in the words of NCCL_IB_HCA: "mlx5,rxe0:1" by beginnings of names,
// "=mlx5_0" by names, "^..." and "^=..." all but those; ":1" is one port of a device.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

class HcaFilter {
 public:
  explicit HcaFilter(std::string_view list);  // Empty: all.

  bool admits(std::string_view device, std::uint32_t port) const;
  // Not only by leaving out others.
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
