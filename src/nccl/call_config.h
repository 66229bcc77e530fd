// ncclCollConfig_t: the configuration of one collective.
#pragma once

#include "src/nccl/calls.h"

namespace tutti::nccl {

// Checks `config` and sets call.handle. The call must have passed check(). Fields without effect here are checked, too.
Outcome configure(Call& call, const ncclCollConfig_t& config);

}  // namespace tutti::nccl
