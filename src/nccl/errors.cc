#include "src/nccl/errors.h"

#include <pthread.h>

#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <system_error>

#include "src/nccl/export.h"

namespace tutti::nccl {
namespace {

constexpr const char* kOutOfMemory = "out of memory";

struct LastError {
  std::mutex mutex;
  std::string text;
};

// Never destroyed, because threads may fail while the process ends.
LastError& of_process() {
  static LastError& last = *new LastError;
  return last;
}

// Created when the library is loaded. A fork() during the first use would leave the child with a locked guard.
[[maybe_unused]] const LastError& made_at_load = of_process();

// A child of fork() starts with the parent's text, and with an unlocked mutex.
[[maybe_unused]] const int whole_in_children = ::pthread_atfork(
    [] { of_process().mutex.lock(); }, [] { of_process().mutex.unlock(); }, [] { of_process().mutex.unlock(); });

const char* text_of(ncclResult_t result) {
  switch (result) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError: return "unhandled cuda error (see ncclGetLastError)";
    case ncclSystemError: return "unhandled system error (see ncclGetLastError)";
    case ncclInternalError: return "internal error of Tutti (see ncclGetLastError)";
    case ncclInvalidArgument: return "invalid argument (see ncclGetLastError)";
    case ncclInvalidUsage: return "invalid usage (see ncclGetLastError)";
    case ncclRemoteError: return "remote process exited or there was a network error";
    case ncclInProgress: return "NCCL operation in progress";
    case ncclTimeout: return "timeout";
  }
  return "unknown result code";
}

struct RenamedFunction {
  std::string_view tutti, nccl;
};
constexpr RenamedFunction kFunctions[] = {{"tutti_get_unique_id", "ncclGetUniqueId"},
                                          {"tutti_comm_create", "ncclCommInitRank"},
                                          {"tutti_comm_create_all", "ncclCommInitAll"},
                                          {"tutti_comm_split", "ncclCommSplit"},
                                          {"tutti_comm_shrink", "ncclCommShrink"},
                                          {"tutti_comm_finalize", "ncclCommFinalize"},
                                          {"tutti_comm_destroy", "ncclCommDestroy"},
                                          {"tutti_comm_abort", "ncclCommAbort"},
                                          {"tutti_comm_async_error", "ncclCommGetAsyncError"},
                                          {"tutti_group_start", "ncclGroupStart"},
                                          {"tutti_group_end", "ncclGroupEnd"},
                                          {"tutti_mem_alloc", "ncclMemAlloc"},
                                          {"tutti_mem_free", "ncclMemFree"},
                                          {"tutti_window_register", "ncclCommWindowRegister"},
                                          {"tutti_window_deregister", "ncclCommWindowDeregister"},
                                          {"tutti_reduction_create_pre_mul_sum", "ncclRedOpCreatePreMulSum"}};

// Returns the error text of a function of tutti.h without the name of that function. Replaces other functions by those
// that the caller knows.
std::string with_functions_of_nccl(std::string_view text) {
  constexpr std::string_view kPrefix = "tutti_", kLetters = "abcdefghijklmnopqrstuvwxyz_";
  const std::size_t colon = text.find(": ");
  if (colon != std::string_view::npos && text.starts_with(kPrefix) && text.find_first_not_of(kLetters) == colon)
    text.remove_prefix(colon + 2);
  std::string replaced;
  for (std::size_t at = text.find(kPrefix); at != std::string_view::npos; at = text.find(kPrefix)) {
    replaced += text.substr(0, at);
    text.remove_prefix(at);
    std::string_view word = text.substr(0, text.find_first_not_of(kLetters));
    text.remove_prefix(word.size());
    for (const RenamedFunction& function : kFunctions)
      if (word == function.tutti) word = function.nccl;
    replaced += word;
  }
  return replaced.append(text);
}

// Text that last_error() returned last, cut to this length. It has no destructor: threads may read it while they or the
// process end.
thread_local constinit char text_for_thread[2048] = "";

}  // namespace

// Timeouts become ncclRemoteError, because clients of NCCL 2.28 do not know ncclTimeout. Aborts do, too, because a peer
// may have aborted.
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
  if (outcome.failed()) outcome.why = with_functions_of_nccl(tutti_last_error(nullptr));
  return outcome;
}

Outcome failure_of(tutti_comm comm) {
  tutti_status failure = tutti_ok;
  TUTTI_NCCL_CHECK(outcome_of(tutti_comm_async_error(comm, &failure)));
  return failure == tutti_ok ? Outcome() : Outcome{result_of(failure), tutti_last_error(comm)};
}

Outcome outcome_of(const std::exception& error) noexcept {
  try {
    if (dynamic_cast<const std::system_error*>(&error) != nullptr)
      return {ncclSystemError, std::string("start a thread: ") + error.what()};
    if (dynamic_cast<const std::bad_alloc*>(&error) == nullptr) return {ncclInternalError, error.what()};
  } catch (const std::bad_alloc&) {
  }
  return {ncclSystemError, kOutOfMemory};
}

ncclResult_t report(const char* function, const Outcome& outcome) {
  if (!outcome.failed()) return outcome.code;
  LastError& last = of_process();
  const std::lock_guard lock(last.mutex);
  try {
    last.text.assign(function).append(": ").append(outcome.why);
  } catch (const std::bad_alloc&) {
    last.text = kOutOfMemory;  // Fits the string's own buffer.
  }
  return outcome.code;
}

const char* last_error() {
  LastError& last = of_process();
  const std::lock_guard lock(last.mutex);
  const std::size_t length = last.text.copy(text_for_thread, sizeof text_for_thread - 1);
  text_for_thread[length] = '\0';
  return text_for_thread;
}

TUTTI_NCCL_API(const char*, GetErrorString, ncclResult_t result) { return text_of(result); }

TUTTI_NCCL_API(const char*, GetLastError, ncclComm_t) { return last_error(); }

}  // namespace tutti::nccl
