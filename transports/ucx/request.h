// Parameters of UCX requests.
#pragma once

#include <type_traits>

#include "transports/ucx/library.h"

namespace tutti {

// Parameters of a request that calls `done` with `about` on completion. `done` is not called if the request completes
// immediately.
template <typename Done>
ucp_request_param_t begun(Done done, void* about) {
  ucp_request_param_t how = {};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  how.user_data = about;
  how.memory_type = UCS_MEMORY_TYPE_HOST;
  if constexpr (std::is_same_v<Done, ucp_am_recv_data_nbx_callback_t>) {
    how.cb.recv_am = done;
  } else {
    how.cb.send = done;
  }
  return how;
}

// Adds the memory type and registration of the lane's slots, for requests with data.
template <typename Lane>
void use(ucp_request_param_t& how, const Lane& lane) {
  how.memory_type = lane.type;
  if (lane.registered == nullptr) return;
  how.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
  how.memh = lane.registered;
}

}  // namespace tutti
