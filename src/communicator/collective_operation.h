// A collective of a group: the prepared call that its communicator has begun.
#pragma once

#include "src/communicator/host_communicator.h"

namespace tutti {

class CollectiveOperation final : public Operation {
 public:
  CollectiveOperation(HostCommunicator& owner, HostCommunicator::Prepared& prepared) : owner_(owner), prepared_(prepared) {}

  Result<bool> advance() override { return owner_.advance(prepared_); }
  Status wait() override { return owner_.wait_for(prepared_.interpreter->blocked().peer, patience_); }

 private:
  HostCommunicator& owner_;
  HostCommunicator::Prepared& prepared_;
  HostCommunicator::Patience patience_;
};

}  // namespace tutti
