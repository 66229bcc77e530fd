// Results of autotuning stored between runs: a text file with a section per kind of machine. An entry of the file has
// an effect only if it names an existing candidate.
//
//   tutti-tune 2
//   machine 0.1.0, hosts 1x2, 2 ranks on 2 CPUs of AMD EPYC, shm
//   class all_gather 33
//   kept direct Simple 32768 1 11.25 10.5
//   tried ring Simple 65536 1 12 11.75
//   class all_gather 33 mapped
//   kept direct_mapped Simple 32768 1 9.5 7.25
//
// A class is a collective and a size class. mapped: all ranks can map the buffers of these calls. A candidate line has
// algorithm, protocol, maximum message size in bytes, channels, and predicted and measured time in us; measured 0:
// excluded before it was measured.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/plan/problem.h"
#include "src/tuner/choose.h"

namespace tutti {

// Size class of a block: two per power of two. 2^k and 1.5 * 2^k are the smallest sizes of their classes.
std::uint32_t size_class(std::uint64_t bytes);
std::uint64_t min_bytes(std::uint32_t size_class);

struct TunedCandidate {
  std::string algorithm;
  Protocol protocol = Protocol::simple;
  std::uint64_t chunk_bytes = 0;
  std::uint32_t channels = 1;
  double predicted_us = 0;
  double measured_us = 0;
  bool operator==(const TunedCandidate&) const = default;
};

struct TunedClass {
  Collective collective = Collective::all_reduce;
  std::uint32_t size_class = 0;
  std::vector<TunedCandidate> candidates;  // The selected candidate comes first; there is at least one.
  bool mapped = false;
  bool operator==(const TunedClass&) const = default;
  bool same_calls(const TunedClass& other) const;
};

struct TuneCache {
  struct Machine {
    std::string name;  // A single line.
    std::vector<TunedClass> classes;
    bool operator==(const Machine&) const = default;
  };
  std::vector<Machine> machines;
  bool operator==(const TuneCache&) const = default;

  const Machine* find(std::string_view machine) const;
  // Adds results of a class; replaces earlier results for the same calls.
  void keep(std::string_view machine, TunedClass tuned);
};

std::string format(const TuneCache& cache);
// Errors contain the line number and the reason.
Result<TuneCache> parse_tune_cache(std::string_view text);

// Fails for a name that the file format cannot represent.
Status check_machine_name(const std::string& name);

// Reads a cache file; a missing file is an empty cache. This function and add_to_tune_cache() block as long as the file
// system does.
Result<TuneCache> read_tune_cache(const std::string& path);
// Fails if the file does not exist and its folder does not let this process create it.
Status check_can_create(const std::string& path);
// Adds results to a cache file. Concurrent readers see the old or the new file. Concurrent writers wait, and fail after
// 2 seconds. Symbolic links are followed: the target is replaced by a file that is synced first, and keeps mode and
// group. If the file would exceed the readers' limit, the machines without updates for longest are dropped. A file of
// another format is not changed, and is an error.
Status add_to_tune_cache(const std::string& path, const TuneCache::Machine& machine);

}  // namespace tutti
