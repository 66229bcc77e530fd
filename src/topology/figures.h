// Nominal bandwidths and latencies by vendor data, for links that were not measured.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/topology/topology.h"

namespace tutti {

// All bandwidths are per direction, in 1e9 bytes/s, after line coding: 8b/10b up to 5 GT/s, 128b/130b up to 32 GT/s,
// FLIT mode from 64 GT/s.
double pci_gbytes_per_s(double gigatransfers_per_s, std::uint32_t lanes);
double nvlink_gbytes_per_s(std::uint32_t sm,
                           std::uint32_t links);  // `sm` selects the generation; unknown values give the oldest one.
// NVLink-C2C bandwidth of one GPU, by generation. A Grace processor has 900 GB/s for both directions together. One
// Hopper (GH200) uses all of it; two Blackwells (GB200, GB300) share it. Unknown generations count as Blackwell.
// Sources: NVIDIA data sheets of GH200 and GB200 NVL72.
double c2c_gbytes_per_s(std::uint32_t sm);
double nic_gbytes_per_s(double megabits_per_s);
// Socket-to-socket bandwidth available to devices: Intel QPI and UPI, and the links of AMD and IBM. `vendor` is spelled
// as in /proc/cpuinfo.
double smp_gbytes_per_s(std::string_view vendor, std::uint32_t family, std::uint32_t model);
inline constexpr double kMemoryGbytesPerS = 50;  // Shared cache to memory: the share of a few cores.
double latency_us(LinkKind kind);                // Estimates; measured values replace them.

// Known GPU models by PCI device id (vendor 10de). The lookups return null for an unknown model.
struct GpuModel {
  std::uint32_t device;
  std::string_view name;
  std::uint32_t sm;
  std::uint32_t nvlinks;  // NVLinks per GPU; 0 for PCIe cards, which do not connect them.
};
const GpuModel* gpu_model(std::uint32_t device);
const GpuModel* gpu_model(std::string_view name);
std::string gpu_models();  // Comma-separated names, for messages.

}  // namespace tutti
