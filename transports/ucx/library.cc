#include "transports/ucx/library.h"

#include <dlfcn.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <type_traits>
#include <utility>

#include "src/base/log.h"

namespace tutti {
namespace {

constexpr unsigned kMajor = 1, kMinMinor = 13;  // Oldest version tested.

thread_local UcxLogScope* words = nullptr;

// UCX installs handlers of fatal signals when it is loaded, unless the program has handlers. This class restores them.
class SavedSignalHandlers {
 public:
  SavedSignalHandlers() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], nullptr, &before_[i]);
    ::sigaltstack(nullptr, &stack_);
  }
  void restore(const UcxLibrary& library) const {
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      struct sigaction now = {};
      ::sigaction(kSignals[i], nullptr, &now);
      if (now.sa_handler == before_[i].sa_handler) continue;
      library.debug_disable_signal(kSignals[i]);
      ::sigaction(kSignals[i], &before_[i], nullptr);
    }
    stack_t now = {};
    if (::sigaltstack(nullptr, &now) == 0 && now.ss_sp != stack_.ss_sp) ::sigaltstack(&stack_, nullptr);
  }

 private:
  static constexpr std::array kSignals = {SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGPIPE, SIGUSR1, SIGUSR2, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_ = {};
  stack_t stack_ = {};
};

struct Opened {
  UcxLibrary library;
  Status status;
};

const Opened& of_process() {
  static const Opened opened = [] {
    auto library = open_ucx_library("libucp.so.0", "libucs.so.0");
    if (!library.ok()) return Opened{{}, std::move(library).status()};
    library.value().log_push_handler(&UcxLogScope::take);
    return Opened{library.value(), {}};
  }();
  return opened;
}

}  // namespace

Result<UcxLibrary> open_ucx_library(const char* ucp_path, const char* ucs_path) {
  const SavedSignalHandlers signals;
  void* ucp = ::dlopen(ucp_path, RTLD_NOW | RTLD_LOCAL);
  void* ucs = ucp == nullptr ? nullptr : ::dlopen(ucs_path, RTLD_NOW | RTLD_LOCAL);
  if (ucs == nullptr)
    return unsupported(std::string("cannot load UCX: ") + ::dlerror() + " (Debian: apt-get install libucx0)");
  UcxLibrary all;
  std::string missing;
  const auto find = [&](void* library, const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    if (function == nullptr) missing += std::string(missing.empty() ? "" : ", ") + name;
  };
  find(ucp, "ucp_get_version", all.get_version);
  find(ucp, "ucp_get_version_string", all.get_version_string);
  find(ucp, "ucp_config_read", all.config_read);
  find(ucp, "ucp_config_modify", all.config_modify);
  find(ucp, "ucp_config_release", all.config_release);
  find(ucp, "ucp_init_version", all.init_version);
  find(ucp, "ucp_context_query", all.context_query);
  find(ucp, "ucp_cleanup", all.cleanup);
  find(ucp, "ucp_worker_create", all.worker_create);
  find(ucp, "ucp_worker_destroy", all.worker_destroy);
  find(ucp, "ucp_worker_query", all.worker_query);
  find(ucp, "ucp_worker_release_address", all.worker_release_address);
  find(ucp, "ucp_worker_progress", all.worker_progress);
  find(ucp, "ucp_worker_get_efd", all.worker_get_efd);
  find(ucp, "ucp_worker_arm", all.worker_arm);
  find(ucp, "ucp_worker_set_am_recv_handler", all.worker_set_am_recv_handler);
  find(ucp, "ucp_ep_create", all.ep_create);
  find(ucp, "ucp_ep_close_nbx", all.ep_close_nbx);
  find(ucp, "ucp_ep_flush_nbx", all.ep_flush_nbx);
  find(ucp, "ucp_am_send_nbx", all.am_send_nbx);
  find(ucp, "ucp_am_recv_data_nbx", all.am_recv_data_nbx);
  find(ucp, "ucp_request_check_status", all.request_check_status);
  find(ucp, "ucp_request_free", all.request_free);
  find(ucp, "ucp_mem_map", all.mem_map);
  find(ucp, "ucp_mem_unmap", all.mem_unmap);
  find(ucs, "ucs_status_string", all.status_string);
  find(ucs, "ucs_debug_disable_signal", all.debug_disable_signal);
  find(ucs, "ucs_log_push_handler", all.log_push_handler);
  if (all.debug_disable_signal != nullptr) signals.restore(all);
  const std::string version = all.get_version_string != nullptr ? all.get_version_string() : "of unknown version";
  if (!missing.empty()) return unsupported(std::string(ucp_path) + " (" + version + ") has no " + missing);
  unsigned major = 0, minor = 0, release = 0;
  all.get_version(&major, &minor, &release);
  if (major != kMajor || minor < kMinMinor)
    return unsupported(std::string(ucp_path) + " is UCX " + version + ", and " + std::to_string(kMajor) + "." +
                       std::to_string(kMinMinor) + " or later is needed");
  return all;
}

Status ucx_library() { return of_process().status.copy(); }

const UcxLibrary& ucx() { return of_process().library; }

// ---- Log messages ----

UcxLogScope::UcxLogScope() : outer_(std::exchange(words, this)) {}
UcxLogScope::~UcxLogScope() { words = outer_; }

std::string explain_ucx(ucs_status_t status) {
  std::string text = ucx().status_string(status);
  if (words != nullptr && words->last_[0] != '\0') text += std::string(" (") + words->last_ + ")";
  return text;
}

// Errors become part of Tutti's error messages; warnings are logged for the user.
ucs_log_func_rc_t UcxLogScope::take(const char*, unsigned, const char*, ucs_log_level_t level,
                                    const ucs_log_component_config_t*, const char* format, va_list arguments) {
  if (words == nullptr || level < UCS_LOG_LEVEL_ERROR || level > UCS_LOG_LEVEL_WARN) return UCS_LOG_FUNC_RC_CONTINUE;
  char text[sizeof words->last_];
  std::vsnprintf(text, sizeof text, format, arguments);
  if (level == UCS_LOG_LEVEL_ERROR) std::snprintf(words->last_, sizeof words->last_, "%s", text);
  log(level == UCS_LOG_LEVEL_ERROR ? LogLevel::info : LogLevel::warn, "ucx: %s", text);
  return UCS_LOG_FUNC_RC_STOP;
}

}  // namespace tutti
