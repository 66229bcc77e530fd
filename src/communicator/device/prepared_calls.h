// Cache of the calls that a rank has prepared on its device. While autotuning tests the candidates of a call, the cache
// has prepared state for each candidate that calls have used.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "src/communicator/device/autotuning.h"
#include "src/communicator/device/call_preparer.h"
#include "src/communicator/device/prepared_call.h"

namespace tutti {

// Not thread-safe. Calls of prepare() come before those of find(), in the same order, unless cancel() intervenes.
class PreparedDeviceCalls {
 public:
  // All arguments must outlive this object. `autotuning`: null: off.
  PreparedDeviceCalls(DeviceCallPreparer& preparer, RankDeviceMemory& memory, DeviceAutotuning* autotuning)
      : preparer_(preparer), memory_(memory), autotuning_(autotuning) {}

  // Prepares a call that may still be refused, and decides which candidate it will use. Until the call is made, or
  // cancel() is called, the address of `call` identifies it.
  Result<const PreparedDeviceCall*> prepare(const Call& call, const CommunicatorOptions& options);
  // Returns the state of a call that is being made. Prepares it again if other calls have replaced it.
  Result<PreparedDeviceCall*> find(const Call& call, const CommunicatorOptions& options);
  // Reports that a collective is being made, after find(). Once its candidates are tuned, the state of the result
  // remains, as for calls without autotuning.
  void note_made(const Call& call, const CommunicatorOptions& options);
  // Drops the state of all calls that were prepared and not made. Other ranks may not have prepared these calls, and
  // would count the calls of a class differently.
  void cancel();

 private:
  struct Slot {
    DeviceCallKey key;
    std::unique_ptr<PreparedDeviceCall> prepared;                      // Null while the class is being tuned.
    DeviceAutotuning::Class* tuned = nullptr;                          // Null unless the class is being tuned.
    std::map<std::size_t, std::unique_ptr<PreparedDeviceCall>> tried;  // By candidate.
    bool is_filled() const { return prepared != nullptr || tuned != nullptr; }
  };
  Slot& slot_of(const DeviceCallKey& key);
  Result<Slot*> filled_slot(const Call& call, const CommunicatorOptions& options);
  Status fill(Slot& slot, const Call& call, const CommunicatorOptions& options);
  bool is_tuned(const Call& call, const CommunicatorOptions& options) const;
  Result<PreparedDeviceCall*> prepared_in(Slot& slot, const Call& call, const CommunicatorOptions& options);
  Result<PreparedDeviceCall*> tried_in(Slot& slot, const Call& call, const CommunicatorOptions& options,
                                       const DeviceAutotuning::Assignment& assignment);
  Result<std::unique_ptr<PreparedDeviceCall>> prepare_candidate(std::size_t candidate, const TuningClass& tuning,
                                                                const Call& call, const CommunicatorOptions& options);
  void clear(Slot& slot);
  void retire(std::unique_ptr<PreparedDeviceCall> prepared);

  DeviceCallPreparer& preparer_;
  RankDeviceMemory& memory_;
  DeviceAutotuning* const autotuning_;
  std::array<Slot, 256> slots_;
  std::vector<Slot*> not_made_;  // With autotuning: slots filled for calls that may still be refused.
  std::vector<std::unique_ptr<PreparedDeviceCall>> replayed_;  // Graphs may replay them, so they live until the end.
};

}  // namespace tutti
