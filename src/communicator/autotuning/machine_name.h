// Names of machines in tune files (TUTTI_TUNE_FILE, src/tuner/tune_cache.h). A name describes the properties of machine
// and ranks that influence which choices are best. Its fields are human-readable.
//
//   0.1.0, hosts 1x2, 1 rank on 1 CPU of AMD EPYC 7763, shm
//   0.1.0, hosts 2x2, 2 ranks on 8 CPUs of AMD EPYC 7763, NUMA domains 4x1, tcp, about 10 Gbit/s, under 100 us
//   0.1.0, 4 ranks on NVIDIA A100 each, 32 thread blocks, links 4 NV 25 GB/s and 2 PHB, laid out as 1f3c09ab
//
// Only rank 0 reads and writes the file, so only it computes the name, from data that all ranks have. Each run of a job
// gets the same name. The name does not include which CPUs or GPUs are used. Classes of links are so wide that most
// measurements of a link fall into one class.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/communicator/call/hosts.h"
#include "src/communicator/call/options.h"

namespace tutti {

// Returns the name for ranks on host memory; empty without a tune file.
std::string machine_name(const CommunicatorOptions& options, const Hosts& hosts);

// Describes hosts by their numbers of ranks: "2x2" for two hosts with two ranks each, "1x1 1x3".
std::string hosts_in_words(std::span<const Rank> sizes);

// Describes the links between the GPUs of one host: "NV 450 GB/s" if all pairs have the same link. Kinds of links are
// as in `tutti topo`; NVLinks include their bandwidth.
std::string links_in_words(const Topology& topology, std::span<const NodeId> gpus);
// Like links_in_words() above, for all ranks of a communicator; "unknown" if the topology is unknown.
std::string links_in_words(const Hosts& hosts);

// Returns the fragment of a vendor's model name that the machine name includes.
std::string model_in_words(std::string_view model);

// Parsed machine name. Names that lack a field match no machine.
struct NamedMachine {
  bool on_devices = false;
  std::string hosts;      // Host memory: see hosts_in_words().
  std::string sharing;    // Host memory: for example "1 rank on 1 CPU of AMD EPYC 7763".
  std::string transport;  // Host memory: the transport between ranks; "shm" within one host.
  Rank ranks = 0;         // Devices: number of ranks.
  std::string links;      // Devices: see links_in_words().
};
std::optional<NamedMachine> parse_machine_name(std::string_view name);

}  // namespace tutti
