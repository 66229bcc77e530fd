// Names of machines in files of TUTTI_TUNE_FILE (src/tuner/tune_cache.h): of the machine and the ranks what decides how
// well choices do, in parts for people.
//
//   0.1.0, hosts 1x2, 1 rank on 1 CPU of AMD EPYC 7763, shm
//   0.1.0, hosts 2x2, 2 ranks on 8 CPUs of AMD EPYC 7763, NUMA domains 4x1, tcp, about 10 Gbit/s, under 100 us
//   0.1.0, 4 ranks on NVIDIA A100 each, 32 thread blocks, links 4 NV 25 GB/s and 2 PHB, laid out as 1f3c09ab
//
// Rank 0 alone reads and writes the file, so nobody else has to come to the same name; but what it sees, all do. The
// same job comes to the same name again: nothing in it says which CPUs or GPUs those are, and links between hosts are
// in classes so wide that most measurements of one fall into one.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/communicator/communicator.h"
#include "src/communicator/hosts.h"

namespace tutti {

// Name for ranks on host memory; empty without a tune file.
std::string machine_name(const CommunicatorOptions& options, const Hosts& hosts);

// Describes hosts by their numbers of ranks: "2x2" for two hosts with two ranks each, "1x1 1x3".
std::string hosts_in_words(std::span<const Rank> sizes);

// How the ranks' GPUs, which are on one host, reach each other: "NV 450 GB/s" each one each other. As `tutti topo` has
// it, NVLinks with what they carry.
std::string links_in_words(const Topology& topology, std::span<const NodeId> gpus);
// The same of a communicator; "unknown" where its topology is.
std::string links_in_words(const Hosts& hosts);

// Part of a vendor's model name that becomes part of the name.
std::string model_in_words(std::string_view model);

// Contents of such a name. Names from earlier versions have less information and match no machine.
struct NamedMachine {
  bool on_devices = false;
  std::string hosts;    // On host memory: as hosts_in_words().
  std::string sharing;  // "1 rank on 1 CPU of AMD EPYC 7763".
  std::string carrier;  // "shm" within one host.
  Rank ranks = 0;       // On devices,
  std::string links;    // as links_in_words().
};
std::optional<NamedMachine> parse_machine_name(std::string_view name);

}  // namespace tutti
