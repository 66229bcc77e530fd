// Calls of functions in the fallback library (fallback.h).
#pragma once

#include <string>
#include <utility>

#include "src/nccl/communicator.h"
#include "src/nccl/groups.h"

namespace tutti::nccl {

inline Outcome not_implemented(const char* why) {
  return invalid_usage(std::string(why) + " set TUTTI_NCCL_FALLBACK to NVIDIA's libnccl.so.2");
}

// State of the communicator that a function needs: calls must be allowed, or only all ranks must have joined. Cleanup
// is also a no-op after an abort.
enum class Use { call, query, cleanup };

// Function of NCCL that the program calls.
struct Called {
  const char* name;
  const char* why;  // Why it is not implemented, and an alternative.
  Use use = Use::call;
};

inline Outcome check_state(Communicator& communicator, Use use) {
  if (use == Use::call) return communicator.ready();
  if (communicator.is_joined()) return {};
  return invalid_argument("the ranks of the communicator have not joined yet, or never did");
}

// Calls the function of the fallback library with its communicator. Within a group, Use::call takes part in it.
template <typename Function, typename Body>
Outcome forward(const Called& called, const ncclComm* comm, Body&& body) {
  const Shared communicator = find(comm);
  if (communicator != nullptr) TUTTI_NCCL_CHECK(check_state(*communicator, called.use));
  if (communicator == nullptr || communicator->fallback() == nullptr) return not_implemented(called.why);
  Fallback& fallback = *communicator->fallback();
  const ncclComm_t there = fallback.comm();
  if (there == nullptr && called.use == Use::cleanup) return {};
  if (there == nullptr) return {ncclRemoteError, "the communicator was aborted"};
  Function* function = nullptr;
  TUTTI_NCCL_CHECK(fallback.nccl().get(called.name, function));
  if (called.use == Use::call) TUTTI_NCCL_CHECK(open_group_of(fallback.nccl()));
  return fallback.nccl().outcome(called.name, body(function, there));
}

// Calls a function without a communicator.
template <typename Function, typename... Arguments>
Outcome forward_to_library(const Called& called, Arguments... arguments) {
  FallbackLibrary* library = nullptr;
  TUTTI_NCCL_CHECK(FallbackLibrary::find(library));
  if (library == nullptr) return not_implemented(called.why);
  Function* function = nullptr;
  TUTTI_NCCL_CHECK(library->get(called.name, function));
  return library->outcome(called.name, function(arguments...));
}

}  // namespace tutti::nccl
