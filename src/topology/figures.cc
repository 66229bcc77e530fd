#include "src/topology/figures.h"

namespace tutti {
namespace {

// Names and device ids: the PCI ID repository (pci-ids.ucw.cz). NVLink counts: NVIDIA data sheets and architecture
// papers.
constexpr GpuModel kGpuModels[] = {
    {0x15f9, "P100-SXM2-16GB", 60, 4}, {0x1db1, "V100-SXM2-16GB", 70, 6},  {0x1db5, "V100-SXM2-32GB", 70, 6},
    {0x1db8, "V100-SXM3-32GB", 70, 6}, {0x20b0, "A100-SXM4-40GB", 80, 12}, {0x20b2, "A100-SXM4-80GB", 80, 12},
    {0x20b5, "A100-PCIe-80GB", 80, 0}, {0x20f1, "A100-PCIe-40GB", 80, 0},  {0x2330, "H100-SXM5-80GB", 90, 18},
    {0x2331, "H100-PCIe-80GB", 90, 0}, {0x2335, "H200-SXM-141GB", 90, 18}, {0x2342, "GH200-480GB", 90, 18},
    {0x2901, "B200-SXM", 100, 18},     {0x2941, "GB200", 100, 18},
};

}  // namespace

double pci_gbytes_per_s(double gigatransfers_per_s, std::uint32_t lanes) {
  const double coding = gigatransfers_per_s <= 5 ? 0.8 : gigatransfers_per_s <= 32 ? 128.0 / 130 : 242.0 / 256;
  return gigatransfers_per_s * coding / 8 * lanes;
}

double nvlink_gbytes_per_s(std::uint32_t sm, std::uint32_t links) {
  return links * (sm >= 100 ? 50.0 : sm >= 70 ? 25.0 : 20.0);
}

double c2c_gbytes_per_s(std::uint32_t sm) { return sm >= 90 && sm < 100 ? 450 : 225; }

double nic_gbytes_per_s(double megabits_per_s) { return megabits_per_s / 8000; }

double smp_gbytes_per_s(std::string_view vendor, std::uint32_t family, std::uint32_t model) {
  if (vendor == "AuthenticAMD") return 16;
  if (vendor != "GenuineIntel" || family != 6) return 12;
  if (model >= 0xad) return 40;   // Granite Rapids and later.
  if (model >= 0x8f) return 22;   // Sapphire and Emerald Rapids.
  return model >= 0x55 ? 10 : 6;  // Skylake, Cascade Lake, Ice Lake: 10. Older: 6.
}

double latency_us(LinkKind kind) {
  switch (kind) {
    case LinkKind::memory: return 0.02;
    case LinkKind::smp: return 0.1;
    case LinkKind::pci: return 0.15;
    case LinkKind::nvlink: return 0.25;
    case LinkKind::c2c: return 0.2;
    case LinkKind::network: return 0.6;
  }
  return 0;
}

const GpuModel* gpu_model(std::uint32_t device) {
  for (const GpuModel& model : kGpuModels)
    if (model.device == device) return &model;
  return nullptr;
}

const GpuModel* gpu_model(std::string_view name) {
  for (const GpuModel& model : kGpuModels)
    if (model.name == name) return &model;
  return nullptr;
}

std::string gpu_models() {
  std::string all;
  for (const GpuModel& model : kGpuModels) all += (all.empty() ? "" : ", ") + std::string(model.name);
  return all;
}

}  // namespace tutti
