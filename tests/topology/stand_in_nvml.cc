// A libnvidia-ml.so.1 of a machine with three GPUs: two with four NVLinks between them, and a switch that the first
// leads two more to; the third is without. What is asked wrongly gets an error, as from the real one.
#include <cstdio>
#include <cstring>

namespace {

struct PciInfo {
  char legacy_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

constexpr const char* kGpus[] = {"00000000:3B:00.0", "00000000:5E:00.0", "00000000:AF:00.0"};
constexpr const char* kSwitch = "00000000:C1:00.0";

int index_of(void* device) { return static_cast<int>(reinterpret_cast<long>(device)) - 1; }

void set(PciInfo* pci, const char* bus_id) {
  *pci = {};
  std::snprintf(pci->bus_id, sizeof pci->bus_id, "%s", bus_id);
}

const char* end_of(int gpu, unsigned link) {
  if (gpu > 1) return nullptr;
  if (link < 4) return kGpus[1 - gpu];
  return gpu == 0 && link < 6 ? kSwitch : nullptr;
}

}  // namespace

extern "C" {

[[gnu::visibility("default")]] int nvmlInit_v2() { return 0; }
[[gnu::visibility("default")]] int nvmlShutdown() { return 0; }
[[gnu::visibility("default")]] const char* nvmlErrorString(int) { return "stand-in"; }
[[gnu::visibility("default")]] int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 3;
  return 0;
}
[[gnu::visibility("default")]] int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= 3) return 2;
  *device = reinterpret_cast<void*>(static_cast<long>(index) + 1);
  return 0;
}
[[gnu::visibility("default")]] int nvmlDeviceGetName(void* device, char* name, unsigned length) {
  return std::snprintf(name, length, "Stand-in %d", index_of(device)) < 0;
}
[[gnu::visibility("default")]] int nvmlDeviceGetCudaComputeCapability(void*, int* major, int* minor) {
  *major = 9;
  *minor = 0;
  return 0;
}
[[gnu::visibility("default")]] int nvmlDeviceGetPciInfo_v3(void* device, PciInfo* pci) {
  set(pci, kGpus[index_of(device)]);
  return 0;
}
[[gnu::visibility("default")]] int nvmlDeviceGetNvLinkState(void* device, unsigned link, unsigned* active) {
  if (link >= 18) return 2;
  *active = end_of(index_of(device), link) != nullptr;
  return 0;
}
[[gnu::visibility("default")]] int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* device, unsigned link, PciInfo* pci) {
  const char* end = end_of(index_of(device), link);
  if (end == nullptr) return 3;
  set(pci, end);
  return 0;
}
[[gnu::visibility("default")]] int nvmlDeviceGetNvLinkRemoteDeviceType(void* device, unsigned link, unsigned* kind) {
  const char* end = end_of(index_of(device), link);
  if (end == nullptr) return 3;
  *kind = end == kSwitch ? 2 : 0;
  return 0;
}

}  // extern "C"
