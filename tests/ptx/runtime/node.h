// The emulated node: number and kind of devices, from environment variables. tests/ptx/runtime/README.md lists them.
#pragma once

#include <cstdint>
#include <string>

namespace tutti::cudart {

enum class Links : std::uint8_t {
  nvlink,  // Every device can access every other.
  pcie,    // No device can access another.
  mixed,   // Devices 2n and 2n + 1 can access each other.
};

// Which running kernels an allocation waits for, apart from those that CUDA documents for the function.
enum class AllocationWaits : std::uint8_t {
  none,
  peers,  // Kernels of devices that have enabled access to the memory of the allocating device.
  all,    // Also kernels of the allocating device.
};

// Devices that support multicast objects.
enum class MulticastSupport : std::uint8_t {
  all,
  none,
  but_last,         // All but the last device.
  last_fails,       // All, but the last device cannot bind memory.
  last_binds_once,  // All, but the last device can bind memory only once in a process.
};

// Export of virtual memory as files, for other processes.
enum class FileExport : std::uint8_t {
  allowed,
  unsupported,  // The device does not support it.
  refused,      // The device supports it, and each export fails, as in some sandboxes.
};

// NVLink domain of the devices, which may be on several emulated hosts.
enum class Fabric : std::uint8_t {
  none,
  rack,            // One domain.
  two_racks,       // One of the first half of the devices, and one of the second.
  refused_in_two,  // Like two_racks and refused.
  refused,         // One domain; no memory with fabric handles can be created, as without NVIDIA's IMEX service.
  unopened,        // One domain; no fabric handle can be opened.
};

struct NodeOptions {
  int devices = 1;
  Links links = Links::nvlink;
  AllocationWaits waits = AllocationWaits::peers;
  bool loads_eagerly = false;
  bool mps = true;
  int memory_mib = 16 << 10;  // Memory of each device, in MiB.
  bool pageable = false;      // Devices can access all host memory.
  int multiprocessors = 64;
  int capability = 90;   // 80: no clusters and no memory synchronization domains.
  std::string programs;  // File that lists PTX to load instead of that of the same kernels in programs; empty: none.
  int queues = 8;        // Hardware queues per device.
  int driver = 13000;    // CUDA version of the driver; 0: there is none.
  MulticastSupport multicast = MulticastSupport::all;
  FileExport files = FileExport::allowed;
  Fabric fabric = Fabric::none;
};

// Read once, by the first call of the runtime.
const NodeOptions& node_options();

bool supports_multicast(int device);
bool linked(int device, int peer);  // True for different devices with a peer-to-peer path.

}  // namespace tutti::cudart
