// Advice of a tuner plugin for the calls of one rank.
#pragma once

#include <memory>

#include "src/communicator/hosts.h"
#include "src/tuner/plugin/plugin.h"

namespace tutti {

struct CallRecord;

class Advice {
 public:
  // `plugin` as in CommunicatorOptions. None, if it cannot be opened or does not start: that is logged.
  Advice(const std::string& plugin, const Hosts& hosts);

  // Whether the plugin says something of a call whose algorithm nobody has forced. Then the choice is its own, and the
  // record shows it, since each rank hears its own plugin: those that hear something else find that calls differ.
  Result<bool> apply(const Query& query, Choice& choice, CallRecord& record);

 private:
  std::unique_ptr<TunerAdviser> adviser_;
};

}  // namespace tutti
