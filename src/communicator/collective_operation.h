// A collective under way: a prepared call with its buffers, and the interpreter that obeys its program.
#pragma once

#include <optional>

#include "src/communicator/host_communicator.h"

namespace tutti {

class CollectiveOperation final : public Operation {
 public:
  // Announces the call to the peers. `memory` is this operation's until it is done.
  CollectiveOperation(HostCommunicator& owner, HostCommunicator::Prepared& prepared, const Call& call, MachineMemory& memory);

  // With memory of its own.
  CollectiveOperation(HostCommunicator& owner, HostCommunicator::Prepared& prepared, const Call& call);

  Result<bool> advance() override;
  Status wait() override;

 private:
  MachineMemory own_memory_;
  HostCommunicator& owner_;
  HostCommunicator::Patience patience_;
  Launch launch_;
  FoldArguments arguments_;
  std::optional<Interpreter<CpuMachine>> interpreter_;  // None where there is nothing to do.
};

}  // namespace tutti
