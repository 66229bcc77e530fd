// Exchange of fixed-size records among all ranks while they connect their devices.
#pragma once

#include <vector>

#include "src/communicator/communicator.h"
#include "src/communicator/group.h"

namespace tutti {

// Collective: returns the items of all ranks in rank order, for each member. own[i] contains the items of members[i].
// Every rank passes the same number of items. Items are trivially copyable.
template <typename Item>
Result<std::vector<std::vector<Item>>> gather(const std::vector<Communicator*>& members,
                                              const std::vector<std::vector<Item>>& own) {
  std::vector<std::vector<Item>> all;
  std::vector<GroupedCall> calls(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    all.emplace_back(members[i]->ranks() * own[i].size());
    calls[i].communicator = members[i];
    calls[i].options.timeout_ms = members[i]->options().init_timeout_ms;
    calls[i].options.update_agreement_hash();
    Call& call = calls[i].call;
    call.collective = Collective::all_gather;
    call.type = DataType::uint8;
    call.count = own[i].size() * sizeof(Item);
    call.input = reinterpret_cast<const std::byte*>(own[i].data());
    call.output = reinterpret_cast<std::byte*>(all[i].data());
  }
  TUTTI_CHECK_OK(run_group(calls));
  return all;
}

}  // namespace tutti
