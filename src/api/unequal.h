// Arguments of all_to_all_v, which are checked and copied on entry.
#pragma once

#include "src/api/call_entry.h"

namespace tutti {

struct UnequalArrays {
  const size_t *send_counts, *send_displacements, *recv_counts, *recv_displacements;
};

tutti_status enter_unequal(CallEntry entry, const UnequalArrays& arrays);

}  // namespace tutti
