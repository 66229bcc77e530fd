// Prepares calls on a device: choice, plan, proof, lanes and image. Waits for no peer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "src/communicator/autotuning/device_autotuning.h"
#include "src/communicator/communicator.h"
#include "src/communicator/device/device_plans.h"
#include "src/communicator/device/plan_chooser.h"
#include "src/communicator/device/prepared_call.h"
#include "src/communicator/device/windows.h"
#include "src/communicator/peers/device_lanes.h"
#include "src/communicator/planning/call_cache.h"
#include "src/communicator/planning/call_planner.h"

namespace tutti {

// Not thread-safe. CallCache (planning/call_cache.h) uses the types and the functions from class_of() to retire().
class DeviceCallPreparer {
 public:
  using Prepared = PreparedDeviceCall;
  using Class = DeviceAutotuning::Class;
  using Trial = std::size_t;  // Number of a candidate.

  // All arguments must outlive this object.
  DeviceCallPreparer(const Communicator& control, PeerSet& peers, const DeviceWindows& windows);

  // Sets the address exchange of this rank's thread blocks, in device memory. Called once, before the first call.
  void use(const AddressExchange* exchange) { exchange_ = exchange; }
  // Returns the autotuning of this rank's calls; null: off.
  DeviceAutotuning* autotuning() const { return autotuning_.get(); }

  // See Communicator::predict_us().
  Result<double> predict_us(const Call& call, const CommunicatorOptions& options) {
    return planner_.predict_us(call, options, false);
  }
  CallKey key_of(const Call& call, const CommunicatorOptions& options) const;
  // True if copy engines run the call. The same on all ranks.
  bool by_copy_engines(const Call& call, const CommunicatorOptions& options) const {
    return requests_copy_engines(call, options) && chooser_.against_copy_engines(call, options).empty();
  }

  Result<Class*> class_of(const Call& call, const CommunicatorOptions& options);
  Result<std::unique_ptr<PreparedDeviceCall>> prepare(const Call& call, const CommunicatorOptions& options);
  // A candidate that does not fit its lanes fails on all ranks; then all use the first one.
  Result<std::unique_ptr<PreparedDeviceCall>> prepare_trial(const Call& call, const CommunicatorOptions& options,
                                                            const Class& tuned, std::size_t candidate);
  void retire(std::unique_ptr<PreparedDeviceCall> prepared);

  // Returns the number of channels of a send or recv; the same on both ranks.
  std::uint32_t message_channels(const Call& call) const;

 private:
  static bool requests_copy_engines(const Call& call, const CommunicatorOptions& options) {
    return options.algorithm == kCopyEngines && call.kind == Kind::collective && is_for_copy_engines(call.collective);
  }
  Result<std::unique_ptr<PreparedDeviceCall>> prepare_for_copy_engines(const Call& call,
                                                                       const CommunicatorOptions& options);
  // Logs why a call does not use copy engines; once.
  void log_without_copy_engines(const Call& call, const CommunicatorOptions& options);
  // `like`: choice to follow, made for another block size; null: the tuner or a plugin chooses.
  Result<std::unique_ptr<PreparedDeviceCall>> prepare_collective(const Call& call, const CommunicatorOptions& options,
                                                                 const Choice* like);
  // Prepares a send or recv, which is a plan of one step.
  Result<std::unique_ptr<PreparedDeviceCall>> prepare_message(const Call& call);
  // How thread blocks run a program.
  struct Execution {
    bool accesses_peers = false;           // They access peers' memory.
    Protocol protocol = Protocol::simple;  // Protocol of its lanes.
    bool copies = false;                   // A fold of one source is a copy.
    bool divides = false;                  // A fold of one source is a copy unless it is complete.
    bool joins_rounds = false;             // StraightOptions::rounds.
  };
  Status put_on_device(const std::vector<const Program*>& programs, const Launch& given, Execution execution,
                       PreparedDeviceCall& prepared);

  const Rank self_, ranks_;
  PeerSet& peers_;
  const DeviceWindows& windows_;
  DevicePlanChooser chooser_;
  CallPlanner planner_;
  DeviceLanes lanes_;
  DevicePlans plans_;
  std::unique_ptr<DeviceAutotuning> autotuning_;
  const AddressExchange* exchange_ = nullptr;
  bool logged_without_copy_engines_ = false;
};

}  // namespace tutti
