// NVIDIA's management library, as far as the library asks it: NVSwitches connect devices with peer access.
#include <cstdio>
#include <cstring>
#include <string>

#include "tests/ptx/runtime/node.h"
#include "tests/ptx/runtime/state.h"

namespace {

struct PciInfo {
  char short_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char id[32];
};

struct FabricInfo {
  unsigned version;
  unsigned char cluster[16];
  int status;
  unsigned clique;
  unsigned char state;
  unsigned health;
};
constexpr unsigned kFabricInfoVersion = sizeof(FabricInfo) | 2U << 24;
constexpr unsigned char kRegistered = 3;

constexpr int kNotSupported = 3, kNotFound = 6, kVersionMismatch = 25;
constexpr int kSwitchBus = 0xff;
constexpr unsigned kLinks = 18;
constexpr int kNvlink = 2, kNoPath = 4, kHostBridge = 30;

// A handle is the ordinal of the device plus one.
int ordinal_of(void* gpu) { return static_cast<int>(reinterpret_cast<std::intptr_t>(gpu)) - 1; }

}  // namespace

extern "C" {

int nvmlInit_v2() { return 0; }

int nvmlDeviceGetHandleByUUID(const char* uuid, void** gpu) {
  for (int device = 0; device < tutti::cudart::node_options().devices; ++device) {
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) return kNotFound;
    std::string text = "GPU";
    for (std::size_t i = 0; i < sizeof properties.uuid.bytes; ++i) {
      char digits[4];
      std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(properties.uuid.bytes[i]));
      text += i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? std::string("-") + digits : digits;
    }
    *gpu = reinterpret_cast<void*>(static_cast<std::intptr_t>(device + 1));
    if (text == uuid) return 0;
  }
  return kNotFound;
}

int nvmlDeviceGetPciInfo_v3(void* gpu, PciInfo* info) {
  *info = {};
  info->bus = static_cast<unsigned>(ordinal_of(gpu));
  return 0;
}

int nvmlDeviceGetNvLinkState(void*, unsigned link, int* enabled) {
  *enabled = link < kLinks ? 1 : 0;
  return 0;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(void*, unsigned, PciInfo* info) {
  *info = {};
  info->bus = kSwitchBus;
  return 0;
}

int nvmlDeviceGetP2PStatus(void* one, void* other, int capability, int* status) {
  *status = capability == kNvlink && tutti::cudart::linked(ordinal_of(one), ordinal_of(other)) ? 0 : kNoPath;
  return 0;
}

int nvmlDeviceGetTopologyCommonAncestor(void*, void*, int* level) {
  *level = kHostBridge;
  return 0;
}

int nvmlDeviceGetGpuFabricInfoV(void* gpu, FabricInfo* info) {
  using tutti::cudart::Fabric, tutti::cudart::node_options;
  if (info->version != kFabricInfoVersion) return kVersionMismatch;
  if (node_options().fabric == Fabric::none) return kNotSupported;
  const Fabric fabric = node_options().fabric;
  const bool two = fabric == Fabric::two_racks || fabric == Fabric::refused_in_two;
  const bool second = two && 2 * ordinal_of(gpu) >= node_options().devices;
  *info = {.version = kFabricInfoVersion,
           .cluster = {0xac, 1},
           .status = 0,
           .clique = second ? 2U : 1U,
           .state = kRegistered,
           .health = 0};
  return 0;
}

}  // extern "C"
