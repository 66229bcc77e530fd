// Results of NCCL's functions with their error texts. ncclGetLastError returns the text of the process's last
// failure in any thread: watchdogs read it in their own.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "src/nccl/abi.h"
#include "tutti/tutti.h"

namespace tutti::nccl {

struct [[nodiscard]] Outcome {
  ncclResult_t code = ncclSuccess;
  std::string why = {};  // Empty unless failed().

  bool failed() const { return code != ncclSuccess && code != ncclInProgress; }
};

inline Outcome in_progress() { return {ncclInProgress}; }
inline Outcome invalid_argument(std::string why) { return {ncclInvalidArgument, std::move(why)}; }
inline Outcome invalid_usage(std::string why) { return {ncclInvalidUsage, std::move(why)}; }
// Converts a status, with the text of the last failing call of this thread.
Outcome outcome_of(tutti_status status);
ncclResult_t result_of(tutti_status status);
// Returns the failure of a communicator, or that it was aborted.
Outcome failure_of(tutti_comm comm);

// Stores the error text for ncclGetLastError, and returns the code.
ncclResult_t report(const char* function, const Outcome& outcome);
// Never null. Valid until the next call in this thread.
const char* last_error();

// Returns early unless the result is ncclSuccess.
#define TUTTI_NCCL_CHECK(expression)                                                                \
  do {                                                                                              \
    if (::tutti::nccl::Outcome checked = (expression); checked.code != ncclSuccess) return checked; \
  } while (false)

// Converts an exception. Throws nothing.
[[gnu::cold]] Outcome outcome_of(const std::exception& error) noexcept;

// Returns what `body` returns. An exception becomes a failed outcome.
template <typename Body>
Outcome caught(Body&& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    return outcome_of(error);
  }
}

// Runs the body of a C function that leaves an open group alone; other functions use grouped() of groups.h.
template <typename Body>
ncclResult_t guarded(const char* function, Body&& body) {
  return report(function, caught(std::forward<Body>(body)));
}

}  // namespace tutti::nccl
