// The end of communicators: at once, or at the end of a group, where one thread may end several ranks.
#pragma once

#include <vector>

#include "src/base/status.h"
#include "tutti/tutti.h"

namespace tutti {

struct Ending {
  tutti_comm comm = nullptr;
  bool destroys = false;  // Or only finalizes.
  bool waits = true;      // For the peers.
};

// Ends all, beside each other: ranks that wait for each other may be among them. Returns the first failure.
Status end_all(const std::vector<Ending>& lifecycle);

// Has it done when the calling thread's group ends.
Status end_with_group(const Ending& ending);

}  // namespace tutti
