// A fake libnvidia-ml.so.1 of a machine with three GPUs. The first two have four NVLinks between them, and the first
// has two more to a switch; the third has none. Invalid queries return errors, like those of the real library.
//
// stand_in_receives() takes words that configure failures. `init` and names of calls fail, those of a GPU with its
// index appended ("name2").
// - `c2c`: the first and the third GPU have NVLink-C2C: ten links, of which one is down, and five. The second has five
//   disabled links. `c2c_down`, `c2c_rateless`: the same with all links down, and with an unknown rate.
// - `garbage1`, `same1`: an invalid bus id, and that of the first GPU.
// - `nowhere0`: links of the first GPU have an invalid remote end.
#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>

namespace {

struct PciInfo {
  char legacy_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

struct Field {
  unsigned id, scope;
  long long timestamp, latency;
  int type, result;
  unsigned long long value;
};

enum Answer { kSuccess = 0, kInvalidArgument = 2, kNotSupported = 3, kNotLoaded = 9, kGpuIsLost = 15, kUnknown = 999 };

constexpr const char* kGpus[] = {"00000000:3B:00.0", "00000000:5E:00.0", "00000000:AF:00.0"};
constexpr const char* kSwitch = "00000000:C1:00.0";
constexpr unsigned kC2cLinks[] = {10, 5, 5};
constexpr unsigned kC2cLinkThatIsDown = 3;  // A link of the first GPU.

std::string words;

bool configured(const std::string& word) {
  std::istringstream all(words);
  for (std::string each; all >> each;)
    if (each == word) return true;
  return false;
}

int index_of(void* device) { return static_cast<int>(reinterpret_cast<long>(device)) - 1; }

// Fails for a GPU that is lost during discovery.
int unless_lost(const char* call, void* device) {
  return configured(call + std::to_string(index_of(device))) ? kGpuIsLost : kSuccess;
}

void set(PciInfo* pci, const char* bus_id) {
  *pci = {};
  std::snprintf(pci->bus_id, sizeof pci->bus_id, "%s", bus_id);
}

const char* end_of(int gpu, unsigned link) {
  if (gpu > 1) return nullptr;
  if (link < 4) return kGpus[1 - gpu];
  return gpu == 0 && link < 6 ? kSwitch : nullptr;
}

bool has_c2c() { return configured("c2c") || configured("c2c_down") || configured("c2c_rateless"); }

void answer(int gpu, Field& field) {
  field.type = 1;
  field.value = 0;
  field.result = has_c2c() ? kSuccess : kNotSupported;
  if (!has_c2c()) return;
  const bool is_there = field.scope < kC2cLinks[gpu];
  const bool is_up = is_there && !configured("c2c_down") && !(gpu == 0 && field.scope == kC2cLinkThatIsDown);
  switch (field.id) {
    case 170: field.value = kC2cLinks[gpu]; break;
    case 171: is_there ? field.value = is_up : field.result = kInvalidArgument; break;
    case 172: is_up && !configured("c2c_rateless") ? field.value = 44712 : field.result = kNotSupported; break;
    default: field.result = kInvalidArgument;
  }
}

}  // namespace

extern "C" {

[[gnu::visibility("default")]] void stand_in_receives(const char* text) { words = text; }

[[gnu::visibility("default")]] int nvmlInit_v2() { return configured("init") ? kNotLoaded : kSuccess; }
[[gnu::visibility("default")]] int nvmlShutdown() { return 0; }
[[gnu::visibility("default")]] const char* nvmlErrorString(int result) {
  return result == kNotLoaded ? "Driver Not Loaded" : result == kGpuIsLost ? "GPU is lost" : "Unknown Error";
}
[[gnu::visibility("default")]] int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 3;
  return configured("count") ? kUnknown : kSuccess;
}
[[gnu::visibility("default")]] int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= 3) return kInvalidArgument;
  void* const gpu = reinterpret_cast<void*>(static_cast<long>(index) + 1);
  if (const int problem = unless_lost("handle", gpu)) return problem;
  *device = gpu;
  return 0;
}
[[gnu::visibility("default")]] int nvmlDeviceGetName(void* device, char* name, unsigned length) {
  if (const int problem = unless_lost("name", device)) return problem;
  return std::snprintf(name, length, "Stand-in %d", index_of(device)) < 0;
}
[[gnu::visibility("default")]] int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  if (const int problem = unless_lost("capability", device)) return problem;
  *major = 9;
  *minor = 0;
  return 0;
}
[[gnu::visibility("default")]] int nvmlDeviceGetPciInfo_v3(void* device, PciInfo* pci) {
  if (const int problem = unless_lost("pci", device)) return problem;
  const std::string index = std::to_string(index_of(device));
  set(pci, configured("garbage" + index) ? "\033[2J" : configured("same" + index) ? kGpus[0] : kGpus[index_of(device)]);
  return 0;
}
[[gnu::visibility("default")]] int nvmlDeviceGetNvLinkState(void* device, unsigned link, unsigned* active) {
  if (link >= 18) return kInvalidArgument;
  if (const int problem = unless_lost("link", device)) return problem;
  *active = end_of(index_of(device), link) != nullptr;
  return 0;
}
[[gnu::visibility("default")]] int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* device, unsigned link, PciInfo* pci) {
  if (const int problem = link == 0 ? unless_lost("end", device) : kSuccess) return problem;
  const char* end = end_of(index_of(device), link);
  if (end == nullptr) return kNotSupported;
  set(pci, configured("nowhere" + std::to_string(index_of(device))) ? "\033[2J" : end);
  return 0;
}
[[gnu::visibility("default")]] int nvmlDeviceGetNvLinkRemoteDeviceType(void* device, unsigned link, unsigned* kind) {
  const char* end = end_of(index_of(device), link);
  if (end == nullptr) return kNotSupported;
  *kind = end == kSwitch ? 2 : 0;
  return 0;
}
[[gnu::visibility("default")]] int nvmlDeviceGetC2cModeInfoV(void* device, unsigned* is_enabled) {
  if (!has_c2c()) return kNotSupported;
  *is_enabled = index_of(device) != 1;
  return 0;
}
[[gnu::visibility("default")]] int nvmlDeviceGetFieldValues(void* device, int count, Field* fields) {
  for (int i = 0; i < count; ++i) answer(index_of(device), fields[i]);
  return 0;
}

}  // extern "C"
