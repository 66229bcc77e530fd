// Ends communicators: at once, or at the end of a group, in which one thread may end several ranks.
#pragma once

#include <vector>

#include "src/base/status.h"
#include "tutti/tutti.h"

namespace tutti {

struct Ending {
  tutti_comm comm = nullptr;
  bool destroys = false;  // False: only finalizes.
  bool waits = true;      // Whether to wait for the peers.
};

// Ends all concurrently, since ranks in the list may wait for each other. Returns the first failure.
Status end_all(const std::vector<Ending>& endings);

// Like note_failure(), but any thread may call it, also after the end of the communicator.
Status note_failure_of(tutti_comm comm, Status status);

// Defers the ending until the calling thread's group ends.
Status end_with_group(const Ending& ending);

}  // namespace tutti
