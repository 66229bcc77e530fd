// CPUs that the ranks of a host share. A rank that waits for a rank on the same CPU must yield to it.
#pragma once

#include <cstdint>

#include "src/communicator/membership/membership.h"

namespace tutti {

class CpuSharing {
 public:
  explicit CpuSharing(const Membership& membership) : membership_(membership) {}

  // Shows the other ranks of the host the CPU on which this thread runs.
  void show_cpu() const;
  // Returns whether the peer last ran on the CPU on which this rank last ran.
  bool shared_with(Rank peer) const;
  // Returns whether a rank on the CPU of this rank has not begun the collective of this number.
  bool one_is_behind(std::uint64_t sequence) const;

  // Shows the CPUs that this thread may use, and counts those of all ranks.
  void count_cpus();
  bool counted() const { return counted_; }  // All ranks have shown their CPUs.
  // Returns whether there are fewer CPUs than ranks. False until they are counted.
  bool oversubscribed() const { return oversubscribed_; }

 private:
  const Membership& membership_;
  bool oversubscribed_ = false;
  bool counted_ = false;
};

}  // namespace tutti
