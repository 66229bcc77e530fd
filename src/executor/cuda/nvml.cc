#include "src/executor/cuda/nvml.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "src/base/library.h"
#include "src/base/log.h"

namespace tutti {
namespace {

using Gpu = void*;

// Constants of nvml.h.
constexpr int kSuccess = 0;
constexpr int kEnabled = 1;
constexpr int kNvlinkCapability = 2;  // NVML_P2P_CAPS_INDEX_NVLINK.
constexpr unsigned kMaxLinks = 18;

struct PciInfo {
  char short_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char id[32];
};
static_assert(sizeof(PciInfo) == 68);

constexpr unsigned char kRegistered = 3;  // NVML_GPU_FABRIC_STATE_COMPLETED.

// nvmlGpuFabricInfo_v2_t.
struct FabricInfo {
  unsigned version = 36 | 2U << 24;
  std::array<std::uint8_t, 16> cluster = {};
  int status = 0;
  unsigned clique = 0;
  unsigned char state = 0;
  unsigned health = 0;
};
static_assert(sizeof(FabricInfo) == 36);

// "GPU-00112233-4455-6677-8899-aabbccddeeff"
std::string uuid_of(const DeviceIdentity& device) {
  std::string text = "GPU";
  for (std::size_t i = 0; i < device.size(); ++i) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%02x", device[i]);
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += digits;
  }
  return text;
}

// Level of two GPUs without NVLink, by NVML's common ancestor: same board 0, one switch 10, several switches 20, host
// bridge 30, NUMA node 40, system 50.
P2pLevel level_of_ancestor(int level) {
  if (level <= 10) return P2pLevel::pix;
  if (level <= 20) return P2pLevel::pxb;
  return level <= 40 ? P2pLevel::phb : P2pLevel::sys;
}

bool same_pci_address(const PciInfo& one, const PciInfo& other) {
  return one.domain == other.domain && one.bus == other.bus && one.device == other.device;
}

}  // namespace

struct Nvml::Functions {
  explicit Functions(Library library) : opened(std::move(library)) {}

  Library opened;
  int (*init)() = nullptr;
  int (*gpu_of)(const char* uuid, Gpu*) = nullptr;
  int (*pci_of)(Gpu, PciInfo*) = nullptr;
  int (*link_state)(Gpu, unsigned link, int* enabled) = nullptr;
  int (*link_end)(Gpu, unsigned link, PciInfo*) = nullptr;
  int (*p2p_status)(Gpu, Gpu, int capability, int* status) = nullptr;
  int (*ancestor)(Gpu, Gpu, int* level) = nullptr;
  int (*fabric_of)(Gpu, FabricInfo*) = nullptr;  // Null if the driver is too old.

  // Number of NVLinks between two GPUs. Through NVSwitches every link reaches every GPU, so all active links count.
  std::uint32_t links(Gpu one, Gpu other) const {
    PciInfo pci = {};
    if (pci_of(other, &pci) != kSuccess) return 0;
    std::uint32_t direct = 0, up = 0;
    for (unsigned link = 0; link < kMaxLinks; ++link) {
      int enabled = 0;
      PciInfo end = {};
      if (link_state(one, link, &enabled) != kSuccess || enabled != kEnabled) continue;
      ++up;
      if (link_end(one, link, &end) == kSuccess && same_pci_address(end, pci)) ++direct;
    }
    if (direct > 0) return direct;
    int status = -1;
    return p2p_status(one, other, kNvlinkCapability, &status) == kSuccess && status == kSuccess ? up : 0;
  }
};

Nvml::Nvml(std::unique_ptr<Functions> functions) : functions_(std::move(functions)) {}
Nvml::~Nvml() = default;

Result<std::unique_ptr<Nvml>> Nvml::open(const char* path) {
  Result<Library> opened = Library::open(path);
  if (!opened.ok()) return unsupported("NVML is not available: " + std::move(opened).status().message());
  std::unique_ptr<Nvml> made(new Nvml(std::make_unique<Functions>(std::move(opened).value())));
  Functions& all = *made->functions_;
  const bool found = all.opened.find("nvmlInit_v2", all.init) &&
                     all.opened.find("nvmlDeviceGetHandleByUUID", all.gpu_of) &&
                     all.opened.find("nvmlDeviceGetPciInfo_v3", all.pci_of) &&
                     all.opened.find("nvmlDeviceGetNvLinkState", all.link_state) &&
                     all.opened.find("nvmlDeviceGetNvLinkRemotePciInfo_v2", all.link_end) &&
                     all.opened.find("nvmlDeviceGetP2PStatus", all.p2p_status) &&
                     all.opened.find("nvmlDeviceGetTopologyCommonAncestor", all.ancestor);
  if (!found) return unsupported(std::string(path) + " is too old to report how GPUs are connected");
  (void)all.opened.find("nvmlDeviceGetGpuFabricInfoV", all.fabric_of);
  const int error = all.init();
  if (error != kSuccess)
    return unsupported(std::string(path) + " failed to initialize: error " + std::to_string(error));
  return made;
}

// Never closed, because threads may outlive static objects.
const Nvml* Nvml::of_process() {
  static const Nvml* nvml = []() -> const Nvml* {
    auto opened = open();
    if (opened.ok()) return std::move(opened).value().release();
    log(LogLevel::info, "distances of GPUs unknown: %s", std::move(opened).status().message().c_str());
    return nullptr;
  }();
  return nvml;
}

DeviceDistance Nvml::distance(const DeviceIdentity& one, const DeviceIdentity& other) const {
  const Functions& all = *functions_;
  Gpu first = nullptr, second = nullptr;
  if (all.gpu_of(uuid_of(one).c_str(), &first) != kSuccess || all.gpu_of(uuid_of(other).c_str(), &second) != kSuccess)
    return {};
  if (const std::uint32_t links = all.links(first, second); links > 0)
    return {.level = P2pLevel::nvl, .links = links, .known = true};
  int level = 0;
  if (all.ancestor(first, second, &level) != kSuccess) return {};
  return {.level = level_of_ancestor(level), .known = true};
}

NvlinkDomain Nvml::domain(const DeviceIdentity& device) const {
  const Functions& all = *functions_;
  Gpu gpu = nullptr;
  FabricInfo info;
  if (all.fabric_of == nullptr || all.gpu_of(uuid_of(device).c_str(), &gpu) != kSuccess ||
      all.fabric_of(gpu, &info) != kSuccess || info.state != kRegistered || info.status != kSuccess)
    return {};
  return {.cluster = info.cluster, .clique = info.clique};
}

}  // namespace tutti
