// NVML functions used by discovery, declared as in nvml.h. All functions return 0 on success.
#pragma once

#include <string>

#include "src/base/library.h"

namespace tutti {

struct NvmlPci {
  char legacy_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(NvmlPci) == 68);

// One value of nvmlDeviceGetFieldValues. `scope` is the link number.
struct NvmlField {
  unsigned id, scope;
  long long timestamp_us, latency_us;
  int type, result;
  unsigned value, upper_half;  // A union of 8 bytes in nvml.h. All fields queried here are small integers.
};
static_assert(sizeof(NvmlField) == 40);

struct NvmlC2cMode {
  unsigned is_enabled;
};

inline constexpr int kNvmlInvalidArgument = 2;
inline constexpr int kNvmlNotSupported = 3;
inline constexpr unsigned kNvmlEndIsSwitch = 2;
inline constexpr unsigned kNvmlC2cLinks = 170;
inline constexpr unsigned kNvmlC2cLinkIsActive = 171;
inline constexpr unsigned kNvmlC2cLinkMegabytes = 172;  // MB/s per direction: 44712 for Grace with Hopper or Blackwell.

struct NvmlFunctions {
  int (*init)();
  int (*shutdown)();
  const char* (*words)(int);
  int (*count)(unsigned*);
  int (*device)(unsigned, void**);
  int (*name)(void*, char*, unsigned);
  int (*capability)(void*, int*, int*);
  int (*pci)(void*, NvmlPci*);
  int (*link_active)(void*, unsigned, unsigned*);
  int (*link_end)(void*, unsigned, NvmlPci*);
  // Optional; null if the driver lacks them.
  int (*link_end_kind)(void*, unsigned, unsigned*);  // Since driver 470.
  int (*fields)(void*, int, NvmlField*);             // C2C fields since driver 525.
  int (*c2c_mode)(void*, NvmlC2cMode*);              // Since driver 550.

  // Looks up all functions. The result is valid while `library` is open. Returns unsupported with the first missing
  // required symbol.
  static Result<NvmlFunctions> of(const Library& library, const std::string& name) {
    NvmlFunctions all = {};
    const char* missing = nullptr;
    const auto need = [&](const char* symbol, auto& function) {
      if (!library.find(symbol, function) && missing == nullptr) missing = symbol;
    };
    need("nvmlInit_v2", all.init);
    need("nvmlShutdown", all.shutdown);
    need("nvmlErrorString", all.words);
    need("nvmlDeviceGetCount_v2", all.count);
    need("nvmlDeviceGetHandleByIndex_v2", all.device);
    need("nvmlDeviceGetName", all.name);
    need("nvmlDeviceGetCudaComputeCapability", all.capability);
    need("nvmlDeviceGetPciInfo_v3", all.pci);
    need("nvmlDeviceGetNvLinkState", all.link_active);
    need("nvmlDeviceGetNvLinkRemotePciInfo_v2", all.link_end);
    if (missing != nullptr) return unsupported(name + " has no " + missing + "; drivers 418 and later have it");
    library.find("nvmlDeviceGetNvLinkRemoteDeviceType", all.link_end_kind);
    library.find("nvmlDeviceGetFieldValues", all.fields);
    library.find("nvmlDeviceGetC2cModeInfoV", all.c2c_mode);
    return all;
  }
};

}  // namespace tutti
