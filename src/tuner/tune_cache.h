// What trials came to, kept between runs: a file of lines, in which each kind of machine has a part of its own. What is
// in such a file is believed as far as it names one of the candidates that there are; nothing else is done on its word.
//
//   tutti-tune 2
//   machine 0.1.0, hosts 1x2, 2 ranks on 2 CPUs of AMD EPYC, shm
//   class all_gather 33
//   kept direct Simple 32768 1 11.25 10.5
//   tried ring Simple 65536 1 12 11.75
//   class all_gather 33 mapped
//   kept direct_mapped Simple 32768 1 9.5 7.25
//
// A class is a collective and the class of its size; mapped: of calls whose buffers all ranks can map, which files of
// version 1 do not know of. Those are read, and written as version 2. Of a candidate: algorithm, protocol, longest
// message in bytes, channels, and the time predicted and measured, in us; measured 0: left out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/plan/problem.h"
#include "src/tuner/choose.h"

namespace tutti {

// Of a block: two classes for each power of two, 2^k and 1.5 * 2^k being the least of theirs.
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
  std::vector<TunedCandidate> candidates;  // The one that was kept comes first; there is one.
  bool mapped = false;
  bool operator==(const TunedClass&) const = default;
  bool same_calls(const TunedClass& other) const;
};

struct TuneCache {
  struct Machine {
    std::string name;  // One line.
    std::vector<TunedClass> classes;
    bool operator==(const Machine&) const = default;
  };
  std::vector<Machine> machines;
  bool operator==(const TuneCache&) const = default;

  const Machine* find(std::string_view machine) const;
  // Takes the place of what was known of the same calls.
  void keep(std::string_view machine, TunedClass tuned);
};

std::string format(const TuneCache& cache);
// Fails with the number of the line and what is wrong with it.
Result<TuneCache> parse_tune_cache(std::string_view text);

// Fails for what a file of this form cannot name.
Status check_machine_name(const std::string& name);

// Both block for as long as the file system does. A file that is not there is empty.
Result<TuneCache> read_tune_cache(const std::string& path);
// Whoever reads meanwhile sees the old file or the new one. Whoever adds meanwhile waits, and fails after 2 seconds.
// A link stays one: what it leads to is replaced, on the disk before it has the name, and keeps its mode and its group.
// Machines that nothing has been added to for longest are dropped where the file would become too large to be read.
// What is not of this form is left as it is, and a failure.
Status add_to_tune_cache(const std::string& path, const TuneCache::Machine& machine);

}  // namespace tutti
