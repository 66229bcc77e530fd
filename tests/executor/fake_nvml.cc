// The functions of NVIDIA's management library that describe connections of GPUs, for a fictitious host. GPU k has k as
// the last byte of its UUID. 0 and 1: two NVLinks between them. 2 and 3: all 18 links lead to a switch. 4 has no
// NVLinks: it shares a PCIe switch with 0, several switches with 1, and the host bridge with 2; 3 is on another socket.
// GPUs 0 and 1 are registered in a domain of several hosts. GPU 2 is being registered, the registration of 3 has
// failed, and 4 belongs to no cluster.
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

struct PciInfo {
  char short_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char id[32];
};

constexpr int kNotFound = 6;
constexpr int kNotSupported = 3;
constexpr int kSwitchBus = 99;
constexpr long kGpus = 5;
constexpr char kUuidBegin[] = "GPU-77000000-0000-0000-0000-0000000000";
char gpus[kGpus];  // Their addresses are the handles.
bool started = false;

long number_of(const void* gpu) { return static_cast<const char*>(gpu) - gpus; }

// Returns the bus of the link's remote end; -1 if the link is down.
int remote_end(long gpu, unsigned link) {
  if (gpu < 2) return link == 3 || link == 7 ? static_cast<int>(1 - gpu) : -1;
  return gpu < 4 ? kSwitchBus : -1;
}

int level_of_4_and(long other) {
  constexpr int kLevels[] = {10, 20, 30, 50, 0};
  return kLevels[other];
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  started = true;
  return 0;
}

int nvmlDeviceGetHandleByUUID(const char* uuid, void** gpu) {
  const std::size_t length = sizeof kUuidBegin - 1;
  if (!started || std::strncmp(uuid, kUuidBegin, length) != 0 || std::strlen(uuid) != length + 2) return kNotFound;
  const long number = std::strtol(uuid + length, nullptr, 16);
  if (number >= kGpus) return kNotFound;
  *gpu = gpus + number;
  return 0;
}

int nvmlDeviceGetPciInfo_v3(void* gpu, PciInfo* info) {
  info->bus = static_cast<unsigned>(number_of(gpu));
  return 0;
}

int nvmlDeviceGetNvLinkState(void* gpu, unsigned link, int* enabled) {
  if (number_of(gpu) == 4) return kNotSupported;
  *enabled = remote_end(number_of(gpu), link) >= 0 ? 1 : 0;
  return 0;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* gpu, unsigned link, PciInfo* info) {
  info->bus = static_cast<unsigned>(remote_end(number_of(gpu), link));
  return 0;
}

// 2 is NVLink; the test does not query PCIe.
int nvmlDeviceGetP2PStatus(void* one, void* other, int capability, int* status) {
  const bool switched = number_of(one) / 2 == 1 && number_of(other) / 2 == 1;
  *status = capability == 2 && !switched ? 4 : 0;
  return 0;
}

int nvmlDeviceGetTopologyCommonAncestor(void* one, void* other, int* level) {
  const long first = number_of(one), second = number_of(other);
  *level = first == 4 ? level_of_4_and(second) : second == 4 ? level_of_4_and(first) : 50;
  return 0;
}

// Bytes of nvmlGpuFabricInfo_v2_t by offset: version 0, cluster 4, status 20, clique 24, state 28, health 32.
int nvmlDeviceGetGpuFabricInfoV(void* gpu, unsigned char* info) {
  unsigned version = 0;
  std::memcpy(&version, info, sizeof version);
  if (version != 0x02000024) return 25;  // NVML_ERROR_ARGUMENT_VERSION_MISMATCH
  const long number = number_of(gpu);
  std::memset(info + 4, 0, 32);
  if (number != 4) info[4] = 0xab, info[19] = 0xcd;
  info[20] = number == 3 ? 99 : 0;
  info[24] = 7;
  info[28] = number == 2 ? 2 : 3;
  return 0;
}

}  // extern "C"
