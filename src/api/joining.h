// Creates communicators and their handles.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "src/api/comm_handle.h"

namespace tutti {

struct RankAndSize {
  Rank rank, ranks;
};

// Returns a handle to a communicator that exists.
Result<tutti_comm> admit(std::unique_ptr<Communicator> communicator);

// Creates a communicator with `make`, which blocks. Stores the handle in *comm before it calls `make`, so that another
// thread can pass it to tutti_comm_abort. `make` must fail soon after *abort becomes nonzero. If `make` fails, stores
// null in *comm again and returns the failure. `launcher`: the text for tutti_comm_launcher.
using MakeCommunicator = std::function<Result<std::unique_ptr<Communicator>>(const std::uint32_t* abort)>;
Status join(const RankAndSize& rank_and_size, const MakeCommunicator& make, tutti_comm* comm,
            std::string launcher = "");

}  // namespace tutti
