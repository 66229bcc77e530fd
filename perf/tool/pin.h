// Ranks on cores of their own.
#pragma once

namespace perf {

// Binds the calling thread to the index-th of the cores that it may use; returns which, or -1 if it could not.
int pin(int index);

}  // namespace perf
