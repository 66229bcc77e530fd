// Information about a rank on a device for its peers, which ranks exchange when they connect.
#pragma once

#include <sys/random.h>
#include <unistd.h>

#include "src/communicator/peers/peer_set.h"

namespace tutti {

// Number of this process, different from that of its parent before a fork.
inline std::uint64_t number_of_process() {
  static const std::uint64_t number = [] {
    std::uint64_t random = 0;
    // Not std::random_device, which needs glibc 2.36. Joining has failed before if the system has no random numbers.
    (void)!::getrandom(&random, sizeof random, 0);
    return random;
  }();
  return number + static_cast<std::uint64_t>(::getpid());
}

// Information that a rank sends to its peers.
struct PeerSet::PeerInfo {
  std::uint64_t process = 0;  // Random number of the process, which ranks with common memory share.
  std::uint64_t memory = 0;   // Number of its RankDeviceMemory in the process.
  DeviceIdentity device = {};
  std::uint32_t thread_blocks = 0;
  std::uint32_t failed = 0;                                // 1: no memory for its exported lanes.
  DeviceShare exported;                                    // Its exported lanes.
  ComputeSharing sharing = ComputeSharing::all_processes;  // How its device is shared.
  Rank driver = 0;                                         // First of the ranks that its thread drives.
  std::uint32_t has_large_lanes = 0;                       // 1: another communicator has some on its device.
  std::uint32_t min_channels = 0;                          // CommunicatorOptions::min_channels.
  std::uint32_t max_channels = 0;                          // CommunicatorOptions::max_channels.
  std::uint32_t multicast = 0;                             // 1: it wants multicast objects, which its device has.
  std::uint32_t requests_ring_over_hosts = 0;              // 1: its communicator requests a plan in that ring.
  std::uint32_t joins_domains = 0;                         // 1: see joins_domains().
  NvlinkDomain domain;

  bool is_here() const { return process == number_of_process(); }
  // True if the two ranks use their device in time slices.
  bool alternates_with(const PeerInfo& other) const {
    if (device != other.device) return false;
    return sharing == ComputeSharing::none || (sharing == ComputeSharing::one_process && process != other.process);
  }
};

}  // namespace tutti
