// Devices without multicast addresses, and hosts: never called.
#pragma once

#include "src/executor/thread_block/operands.h"

namespace tutti {

TUTTI_HOST_DEVICE inline void multimem_fence() {}
template <typename T>
TUTTI_HOST_DEVICE Pack multimem_sum(const std::byte*) {
  return {};
}
TUTTI_HOST_DEVICE inline void multimem_store(std::byte*, const Pack&) {}

}  // namespace tutti
