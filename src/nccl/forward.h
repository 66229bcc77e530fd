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

// Function of NCCL that the program calls.
struct Called {
  const char* name;
  const char* why;  // Why it is not implemented, and an alternative.
};

// Calls the function of the fallback library with its communicator.
template <typename Function, typename Body>
Outcome forward(const Called& called, const ncclComm* comm, Body&& body) {
  const Shared communicator = find(comm);
  if (communicator != nullptr) TUTTI_NCCL_CHECK(communicator->ready());
  if (communicator == nullptr || communicator->fallback() == nullptr) return not_implemented(called.why);
  Fallback& fallback = *communicator->fallback();
  const ncclComm_t there = fallback.comm();
  if (there == nullptr) return {ncclRemoteError, "the communicator was aborted"};
  Function* function = nullptr;
  TUTTI_NCCL_CHECK(fallback.library().get(called.name, function));
  TUTTI_NCCL_CHECK(open_group_of(fallback.library()));
  return fallback.library().outcome(called.name, body(function, there));
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
