// The prepared calls of a rank on its device. A group prepares all its calls before it makes them.
#pragma once

#include <vector>

#include "src/communicator/device/call_preparer.h"
#include "src/communicator/planning/call_cache.h"

namespace tutti {

// Not thread-safe. Calls of prepare() come before those of make(), in the same order, unless cancel() intervenes.
class PreparedDeviceCalls {
 public:
  // `preparer` must outlive this object.
  explicit PreparedDeviceCalls(DeviceCallPreparer& preparer) : preparer_(preparer), cache_(preparer) {}

  // Prepares a call that may still be refused, and decides which candidate it will use. Until the call is made, or
  // cancel() is called, the address of `call` identifies it.
  Result<const PreparedDeviceCall*> prepare(const Call& call, const CommunicatorOptions& options);
  // Returns the state of a call that is being made. Prepares it again if other calls have replaced it. Once the
  // candidates of a collective are tuned, the state of the result remains, as for calls without autotuning.
  Result<PreparedDeviceCall*> make(const Call& call, const CommunicatorOptions& options);
  // Drops the state of all calls that were prepared and not made. Other ranks may not have prepared these calls, and
  // would count the calls of a class differently.
  void cancel();

 private:
  using Cache = CallCache<DeviceCallPreparer>;
  Result<Cache::Slot*> filled_slot(const Call& call, const CommunicatorOptions& options);
  Result<PreparedDeviceCall*> prepared_in(Cache::Slot& slot, const Call& call, const CommunicatorOptions& options);
  void note_made(Cache::Slot& slot, const Call& call);

  DeviceCallPreparer& preparer_;
  Cache cache_;
  std::vector<Cache::Slot*> not_made_;  // With autotuning: slots filled for calls that may still be refused.
};

}  // namespace tutti
