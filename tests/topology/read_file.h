// Topology files in tests/topology/files.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "src/topology/formats.h"

namespace tutti::test {

inline constexpr const char* kFiles[] = {"nccl-aws-p4d-8xA100.xml", "nccl-azure-ndv4-8xA100.xml",
                                         "nccl-azure-ncv4-4xA100-pcie.xml", "nccl-ibm-gx3d-8xH100.xml",
                                         "hwloc-dgx2-16xV100.xml"};

inline constexpr const char* kOddFile = "odd-texts.xml";  // Multibyte letters, and PCI addresses unknown in sysfs.

inline std::string text_of(const std::string& name) {
  std::ifstream file(std::string(TUTTI_TOPOLOGY_FILES) + "/" + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline Topology topology_of(const std::string& name) {
  Result<Topology> topology = read_topology(text_of(name), name);
  EXPECT_TRUE(topology.ok()) << std::move(topology).status().message();
  return topology.ok() ? std::move(topology).value() : Topology();
}

}  // namespace tutti::test
