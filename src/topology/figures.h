// What links carry where nobody has measured it: the makers' figures, by generation and model.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/topology/topology.h"

namespace tutti {

// Each way, in 1e9 bytes a second, line coding taken off (8b/10b up to 5 GT/s, 128b/130b up to 32; FLIT mode from 64).
double pci_gbytes_per_s(double gigatransfers_per_s, std::uint32_t lanes);
double nvlink_gbytes_per_s(std::uint32_t sm,
                           std::uint32_t links);  // By the GPU's generation; unknown ones as the oldest.
// NVLink-C2C of a GPU, by its generation: a Grace processor's 900 GB/s, both ways together, are one Hopper's (GH200) or
// of two Blackwells (GB200, GB300); unknown ones as those. Sources: NVIDIA's data sheets of GH200 and GB200 NVL72.
double c2c_gbytes_per_s(std::uint32_t sm);
double nic_gbytes_per_s(double megabits_per_s);
// Between sockets, as far as devices get it: Intel's QPI and UPI, AMD's and IBM's links. `vendor` as /proc/cpuinfo has
// it.
double smp_gbytes_per_s(std::string_view vendor, std::uint32_t family, std::uint32_t model);
inline constexpr double kMemoryGbytesPerS = 50;  // Between a shared cache and memory: what a few cores get.
double latency_us(LinkKind kind);                // Estimates; what is measured takes their place.

// What is known of a GPU by the number of its device on PCI (vendor 10de). Null: not listed.
struct GpuModel {
  std::uint32_t device;
  std::string_view name;
  std::uint32_t sm;
  std::uint32_t nvlinks;  // Bricks of a GPU that leads them somewhere; 0 for those on cards.
};
const GpuModel* gpu_model(std::uint32_t device);
const GpuModel* gpu_model(std::string_view name);
std::string gpu_models();  // Their names, for a sentence.

}  // namespace tutti
