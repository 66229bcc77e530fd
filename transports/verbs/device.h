// RDMA devices that this process has opened, and selection of their ports.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/base/owned.h"
#include "src/base/status.h"
#include "transports/device_region.h"
#include "transports/verbs.h"
#include "transports/verbs/library.h"

namespace tutti {

void release_context(ibv_context* context);
void release_domain(ibv_pd* domain);
void release_region(ibv_mr* region);

// Registered memory that the device may read. remote: the peer may write it. read_back: peers with the key may also
// read it.
using MemoryRegion = Owned<ibv_mr*, release_region>;
enum class RegionUse : std::uint8_t { local, remote, read_back };

struct DeviceMemoryRegion {
  MemoryRegion region;
  std::string how;  // "by dma-buf"
};

// A device with one protection domain, so that registered memory serves all connections of the device.
class VerbsDevice {
 public:
  static Result<std::shared_ptr<VerbsDevice>> open(ibv_device* device);

  const std::string& name() const { return name_; }
  // True for Soft-RoCE, a kernel driver that sends by UDP.
  bool is_software() const { return is_software_; }
  // True for iWARP, whose connections are established differently; not supported.
  bool iwarp() const { return iwarp_; }
  ibv_context* context() const { return context_.get(); }
  ibv_pd* domain() const { return domain_.get(); }
  Result<MemoryRegion> register_memory(void* address, std::size_t bytes, RegionUse use) const;
  // Registers a region by its dma-buf, or by its address, which GPU drivers may allow.
  Result<DeviceMemoryRegion> register_region(const DeviceRegion& region) const;

 private:
  std::string name_;
  bool is_software_ = false, iwarp_ = false;
  Owned<ibv_context*, release_context> context_;
  Owned<ibv_pd*, release_domain> domain_;
};

// An active port.
struct VerbsPort {
  std::shared_ptr<VerbsDevice> device;
  std::uint8_t number = 1;
  bool ethernet = false;  // RoCE: the peer is addressed by GID; otherwise by LID.
  std::uint16_t lid = 0;
  ibv_mtu mtu = IBV_MTU_1024;
  std::uint32_t gid_index = 0;
  ibv_gid gid = {};

  // Returns, for example, "rxe0 port 1, gid 1 (::ffff:10.77.0.1)".
  std::string describe() const;
};

std::string describe(const ibv_gid& gid);

inline constexpr std::size_t kMaxPorts = 8;

// Returns active ports that `options` admit, at most kMaxPorts, ordered by name. If there is none, the error gives
// the reason for each port.
Result<std::vector<VerbsPort>> find_verbs_ports(const VerbsOptions& options);

}  // namespace tutti
