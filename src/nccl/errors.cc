#include "src/nccl/errors.h"

#include <pthread.h>

#include <mutex>

#include "src/nccl/door.h"

namespace tutti::nccl {
namespace {

struct LastError {
  std::mutex mutex;
  std::string text;
  std::string late;  // Given to threads whose own objects are destroyed.
};

// Never destroyed: threads may fail while the process ends.
LastError& of_process() {
  static LastError& last = *new LastError;
  return last;
}

// When the library is loaded: a fork beside the first use would leave the child waiting for the end of it.
[[maybe_unused]] const LastError& made_at_load = of_process();

// A child of fork() starts with the parent's sentence, and with the lock free.
[[maybe_unused]] const int whole_in_children = ::pthread_atfork(
    [] { of_process().mutex.lock(); }, [] { of_process().mutex.unlock(); }, [] { of_process().mutex.unlock(); });

const char* text_of(ncclResult_t result) {
  switch (result) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError: return "unhandled cuda error (ncclGetLastError has the sentence)";
    case ncclSystemError: return "unhandled system error (ncclGetLastError has the sentence)";
    case ncclInternalError: return "internal error of Tutti (ncclGetLastError has the sentence)";
    case ncclInvalidArgument: return "invalid argument (ncclGetLastError has the sentence)";
    case ncclInvalidUsage: return "invalid usage (ncclGetLastError has the sentence)";
    case ncclRemoteError: return "remote process exited or there was a network error";
    case ncclInProgress: return "NCCL operation in progress";
    case ncclTimeout: return "timeout";
  }
  return "unknown result code";
}

thread_local constinit bool thread_has_ended = false;

struct Kept {
  std::string text;
  ~Kept() { thread_has_ended = true; }
};

// With the lock held. Destructors of globals ask when the main thread's objects are gone.
const char* keep(LastError& last) {
  if (thread_has_ended) return (last.late = last.text).c_str();
  thread_local Kept kept;
  kept.text = last.text;
  return kept.text.c_str();
}

}  // namespace

// A peer that did not come in time is a failed one to its caller: clients of 2.28 know no ncclTimeout. An abort is told
// alike, since it may be a peer's.
ncclResult_t result_of(tutti_status status) {
  switch (status) {
    case tutti_ok: return ncclSuccess;
    case tutti_invalid_argument: return ncclInvalidArgument;
    case tutti_invalid_usage:
    case tutti_unsupported: return ncclInvalidUsage;
    case tutti_system_error: return ncclSystemError;
    case tutti_remote_error:
    case tutti_timeout:
    case tutti_aborted: return ncclRemoteError;
    case tutti_in_progress: return ncclInProgress;
    case tutti_internal_error: break;
  }
  return ncclInternalError;
}

Outcome outcome_of(tutti_status status) {
  Outcome outcome = {result_of(status)};
  if (outcome.failed()) outcome.why = tutti_last_error(nullptr);
  return outcome;
}

ncclResult_t report(const char* function, const Outcome& outcome) {
  if (!outcome.failed()) return outcome.code;
  LastError& last = of_process();
  const std::lock_guard lock(last.mutex);
  try {
    last.text.assign(function).append(": ").append(outcome.why);
  } catch (const std::bad_alloc&) {
    last.text.clear();  // The code still says what happened.
  }
  return outcome.code;
}

const char* last_error() {
  LastError& last = of_process();
  const std::lock_guard lock(last.mutex);
  try {
    return keep(last);
  } catch (const std::bad_alloc&) {
    return "";
  }
}

TUTTI_NCCL_API(const char*, GetErrorString, ncclResult_t result) { return text_of(result); }

TUTTI_NCCL_API(const char*, GetLastError, ncclComm_t) { return last_error(); }

}  // namespace tutti::nccl
