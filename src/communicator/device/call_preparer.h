// Prepares calls on a device: choice, plan, proof, lanes and image. Waits for no peer. PreparedDeviceCalls caches the
// results.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "src/communicator/communicator.h"
#include "src/communicator/device/device_plans.h"
#include "src/communicator/device/plan_chooser.h"
#include "src/communicator/device/prepared_call.h"
#include "src/communicator/device/windows.h"
#include "src/communicator/peers/links.h"

namespace tutti {

// Not thread-safe.
class DeviceCallPreparer {
 public:
  // All arguments must outlive this object.
  DeviceCallPreparer(const Communicator& control, PeerSet& peers, const DeviceWindows& windows);

  // Sets the address exchange of this rank's thread blocks, in device memory. Called once, before the first call.
  void use(const AddressExchange* exchange) { exchange_ = exchange; }

  DevicePlanChooser& chooser() { return chooser_; }
  Rank ranks() const { return ranks_; }

  DeviceCallKey key_of(const Call& call, const CommunicatorOptions& options) const;
  // Prepares a collective. `like`: choice to follow, made for another block size; null: the tuner or a plugin chooses.
  Result<std::unique_ptr<PreparedDeviceCall>> prepare(const Call& call, const CommunicatorOptions& options,
                                                      const Choice* like);
  // Prepares a send or recv, which is a plan of one step.
  Result<std::unique_ptr<PreparedDeviceCall>> prepare_message(const Call& call);
  // Returns the number of channels of a send or recv; the same on both ranks.
  std::uint32_t message_channels(const Call& call) const;

 private:
  // How thread blocks run a program.
  struct Execution {
    bool accesses_peers = false;           // They access peers' memory.
    Protocol protocol = Protocol::simple;  // Protocol of its lanes.
    bool copies = false;                   // A fold of one source is a copy.
  };
  Status put_on_device(const std::vector<const Program*>& programs, const Launch& given, Execution execution,
                       PreparedDeviceCall& prepared);

  const Rank self_, ranks_;
  const std::uint32_t max_channels_;  // Maximum of a message, whose handle has no influence.
  PeerSet& peers_;
  const DeviceWindows& windows_;
  DevicePlanChooser chooser_;
  DeviceLinks links_;
  DevicePlans plans_;
  const AddressExchange* exchange_ = nullptr;
};

}  // namespace tutti
