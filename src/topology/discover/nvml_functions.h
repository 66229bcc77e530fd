// What discovery calls of NVIDIA's management library, declared as nvml.h does. A result of 0 is success.
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

inline constexpr int kNvmlInvalidArgument = 2;
inline constexpr int kNvmlNotSupported = 3;
inline constexpr unsigned kNvmlEndIsSwitch = 2;

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
  int (*link_end_kind)(void*, unsigned, unsigned*);  // From driver 470 on; may be null.

  // Good for as long as the library is open. unsupported names the first that it has not and must have.
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
    if (missing != nullptr) return unsupported(name + " has no " + missing + ", which drivers from 418 on have");
    library.find("nvmlDeviceGetNvLinkRemoteDeviceType", all.link_end_kind);
    return all;
  }
};

}  // namespace tutti
