// Choices of a tuner plugin for the calls of one rank.
#pragma once

#include <memory>

#include "src/communicator/call/hosts.h"
#include "src/tuner/plugin/plugin.h"

namespace tutti {

struct CallRecord;

class Advice {
 public:
  // `plugin` is as in CommunicatorOptions. If it cannot be opened or initialized, logs that and never applies advice.
  Advice(const std::string& plugin, const Hosts& hosts);

  // Asks the plugin about a call whose algorithm is not forced. Returns whether the plugin made a choice; `choice` is
  // then the plugin's, and `record` includes it. Each rank asks its own plugin, so ranks with different advice detect
  // that their calls differ.
  Result<bool> apply(const Query& query, Choice& choice, CallRecord& record);

 private:
  std::unique_ptr<TunerAdviser> adviser_;
};

}  // namespace tutti
