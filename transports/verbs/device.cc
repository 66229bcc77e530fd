#include "transports/verbs/device.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "transports/verbs/hca_filter.h"

namespace tutti {
namespace {

constexpr std::uint32_t kMaxPortNumbers = 8;  // Maximum port number of one device; larger numbers are refused.

bool is_ipv4(const ibv_gid& gid) {
  constexpr std::array<std::uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.raw, kMapped.data(), kMapped.size()) == 0;
}

int access_for(RegionUse use) {
  switch (use) {
    case RegionUse::local: return 0;
    case RegionUse::remote: return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    case RegionUse::read_back: return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  }
  return 0;
}

bool is_link_local(const ibv_gid& gid) { return gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80; }

// Prefers routable addresses to others, and configured addresses to those made of a MAC.
int worth(const ibv_gid_entry& entry) {
  if (entry.gid_type != IBV_GID_TYPE_ROCE_V2) return 1;
  if (is_ipv4(entry.gid)) return 4;
  return is_link_local(entry.gid) ? 2 : 3;
}

// Returns the first GID of the highest worth.
std::optional<ibv_gid_entry> best_gid(const VerbsPort& port, int entries) {
  std::optional<ibv_gid_entry> best;
  for (int index = 0; index < entries; ++index) {
    ibv_gid_entry entry = {};
    const int error = ibv().query_gid(port.device->context(), port.number, static_cast<std::uint32_t>(index), &entry, 0,
                                      sizeof entry);
    if (error != 0) continue;  // GID tables may have unused entries.
    if (!best || worth(entry) > worth(*best)) best = entry;
    if (!port.ethernet) break;
  }
  return best;
}

// True if the vendor is unknown: the kernel's soft-RoCE driver reports 0, or all ones since Linux 5.6.
bool has_no_vendor(const ibv_device_attr& attributes) {
  return attributes.vendor_id == 0 || attributes.vendor_id == 0xffffff;
}

// Returns why the device cannot be used; empty if it can, independent of its port.
std::string look_at_device(const VerbsPort& port, const VerbsOptions& options, const HcaFilter& filter) {
  const std::string& name = port.device->name();
  if (!filter.admits(name, port.number)) return "is left out by TUTTI_IB_HCA or NCCL_IB_HCA (" + options.hca + ")";
  if (port.device->iwarp()) return "is iWARP, which is not supported: use its network interface, by tcp";
  const bool wanted = options.use == VerbsUse::requested || filter.names(name, port.number);
  if (port.device->is_software() && !wanted)
    return "is a software device, slower than TCP: used only if TUTTI_IB_HCA names it";
  return "";
}

// Returns why the port cannot be used; empty if it can.
std::string look_at(VerbsPort& port, const VerbsOptions& options) {
  ibv_port_attr attributes = {};
  if (ibv().query_port(port.device->context(), port.number, &attributes) != 0) return "does not report its state";
  if (attributes.state != IBV_PORT_ACTIVE)
    return std::string("is ") + ibv().port_state_str(attributes.state) + ", not active";
  port.ethernet = attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
  port.lid = attributes.lid;
  port.mtu = attributes.active_mtu;
  std::optional<ibv_gid_entry> chosen;
  if (options.gid_index < 0) {
    chosen = best_gid(port, attributes.gid_tbl_len);
    if (!chosen) return "has no GID: give its network interface an address";
  } else {
    chosen.emplace();
    const auto index = static_cast<std::uint32_t>(options.gid_index);
    if (ibv().query_gid(port.device->context(), port.number, index, &*chosen, 0, sizeof *chosen) != 0)
      return "has no GID " + std::to_string(index) + ", which TUTTI_IB_GID_INDEX or NCCL_IB_GID_INDEX asks for";
  }
  port.gid = chosen->gid;
  port.gid_index = chosen->gid_index;
  return "";
}

// Appends the usable ports of a device; `reasons` lists why others are not.
void add_ports(const std::shared_ptr<VerbsDevice>& device, const VerbsOptions& options, std::vector<VerbsPort>& ports,
               std::string& reasons) {
  const HcaFilter filter(options.hca);
  for (std::uint32_t number = 1; number <= kMaxPortNumbers; ++number) {
    ibv_port_attr attributes = {};
    if (number > 1 && ibv().query_port(device->context(), static_cast<std::uint8_t>(number), &attributes) != 0) return;
    VerbsPort port;
    port.device = device;
    port.number = static_cast<std::uint8_t>(number);
    std::string why = look_at_device(port, options, filter);
    if (why.empty()) why = look_at(port, options);
    if (why.empty()) {
      ports.push_back(std::move(port));
    } else {
      reasons += "; " + device->name() + " port " + std::to_string(number) + " " + why;
    }
  }
}

}  // namespace

void release_context(ibv_context* context) {
  if (releases_verbs()) (void)ibv().close_device(context);
}
void release_domain(ibv_pd* domain) {
  if (releases_verbs()) (void)ibv().dealloc_pd(domain);
}
void release_region(ibv_mr* region) {
  if (releases_verbs()) (void)ibv().dereg_mr(region);
}

Result<std::shared_ptr<VerbsDevice>> VerbsDevice::open(ibv_device* device) {
  auto made = std::make_shared<VerbsDevice>();
  made->name_ = ibv().get_device_name(device);
  errno = 0;
  made->context_.reset(ibv().open_device(device));
  if (!made->context_) return system_error("open RDMA device " + made->name_);
  ibv_device_attr attributes = {};
  if (ibv().query_device(made->context(), &attributes) == 0) made->is_software_ = has_no_vendor(attributes);
  made->iwarp_ = device->transport_type == IBV_TRANSPORT_IWARP;
  made->domain_.reset(ibv().alloc_pd(made->context()));
  if (!made->domain_) return system_error("make a protection domain of RDMA device " + made->name_);
  return made;
}

Result<MemoryRegion> VerbsDevice::register_memory(void* address, std::size_t bytes, RegionUse use) const {
  MemoryRegion region(ibv().reg_mr(domain(), address, bytes, access_for(use)));
  if (region) return region;
  const bool limited = errno == ENOMEM || errno == EPERM;
  Status failed = system_error("register " + std::to_string(bytes) + " bytes with RDMA device " + name_);
  if (!limited) return failed;
  return Status(failed.code(), failed.message() + "; raise the limit of locked memory: ulimit -l unlimited");
}

// Either way, peers write to addresses of the device.
Result<DeviceMemoryRegion> VerbsDevice::register_region(const DeviceRegion& region) const {
  const int access = access_for(region.ordered ? RegionUse::remote : RegionUse::read_back);
  std::byte* at = region.memory.get();
  std::string why = region.no_dma_buf;
  if (region.dma_buf >= 0 && ibv().reg_dmabuf_mr == nullptr) why = "libibverbs is older than rdma-core 34";
  if (region.dma_buf >= 0 && ibv().reg_dmabuf_mr != nullptr) {
    const auto address = reinterpret_cast<std::uint64_t>(at);
    MemoryRegion registered(ibv().reg_dmabuf_mr(domain(), 0, region.bytes, address, region.dma_buf, access));
    if (registered) return DeviceMemoryRegion{std::move(registered), "by dma-buf"};
    why = std::strerror(errno);
  }
  MemoryRegion registered(ibv().reg_mr(domain(), at, region.bytes, access));
  if (registered) return DeviceMemoryRegion{std::move(registered), "by its address"};
  Status failed = system_error("RDMA device " + name() + " does not reach memory of " + region.name +
                               ": by dma-buf: " + why + "; by its address");
  if (region.kind != MemoryKind::cuda) return failed;
  return Status(failed.code(), failed.message() + ": see whether nvidia-peermem is loaded");
}

std::string describe(const ibv_gid& gid) {
  std::array<char, INET6_ADDRSTRLEN> text = {};
  return ::inet_ntop(AF_INET6, gid.raw, text.data(), text.size());
}

std::string VerbsPort::describe() const {
  return device->name() + " port " + std::to_string(number) + ", gid " + std::to_string(gid_index) + " (" +
         tutti::describe(gid) + ")";
}

Result<std::vector<VerbsPort>> find_verbs_ports(const VerbsOptions& options) {
  TUTTI_CHECK_OK(verbs_library());
  int count = 0;
  ibv_device** list = ibv().get_device_list(&count);
  if (list == nullptr && errno == ENOSYS)  // The kernel lacks the module.
    return unsupported("this machine has no RDMA device: `ibv_devices` and `rdma link` list what there is");
  if (list == nullptr) return system_error("list RDMA devices");
  std::vector<VerbsPort> ports;
  std::string reasons;
  for (int i = 0; i < count; ++i) {
    Result<std::shared_ptr<VerbsDevice>> device = VerbsDevice::open(list[i]);
    if (device.ok()) {
      add_ports(device.value(), options, ports, reasons);
    } else {
      reasons += "; " + std::move(device).status().message();
    }
  }
  ibv().free_device_list(list);
  if (count == 0)
    return unsupported("this machine has no RDMA device: `ibv_devices` and `rdma link` list what there is");
  if (ports.empty()) return unsupported("no port of an RDMA device can be used here" + reasons);
  std::sort(ports.begin(), ports.end(), [](const VerbsPort& one, const VerbsPort& other) {
    return std::pair(one.device->name(), one.number) < std::pair(other.device->name(), other.number);
  });
  if (ports.size() > kMaxPorts) ports.resize(kMaxPorts);
  return ports;
}

}  // namespace tutti
