// How communicators get their handles.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "src/api/comm_handle.h"

namespace tutti {

struct Seat {
  Rank rank, ranks;
};

// Of one that is there.
Result<tutti_comm> admit(std::unique_ptr<Communicator> communicator, std::string launcher = "");

// Makes one while its handle is there already, so that another thread can abort that: `make` watches the word, and
// gives up when it is not 0. Null again if it fails.
using MakeCommunicator = std::function<Result<std::unique_ptr<Communicator>>(const std::uint32_t* abort)>;
Status join(const Seat& seat, const MakeCommunicator& make, tutti_comm* comm);

}  // namespace tutti
