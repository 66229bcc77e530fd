// libucp.so.0 and libucs.so.0, loaded when they are first needed, so that programs run without UCX.
#pragma once

#include <ucp/api/ucp.h>
#include <ucs/debug/debug.h>
#include <ucs/debug/log_def.h>

#include <string>

#include "src/base/status.h"

namespace tutti {

struct UcxLibrary {
  decltype(&::ucp_get_version) get_version = nullptr;
  decltype(&::ucp_get_version_string) get_version_string = nullptr;
  decltype(&::ucp_config_read) config_read = nullptr;
  decltype(&::ucp_config_modify) config_modify = nullptr;
  decltype(&::ucp_config_release) config_release = nullptr;
  decltype(&::ucp_init_version) init_version = nullptr;
  decltype(&::ucp_context_query) context_query = nullptr;
  decltype(&::ucp_cleanup) cleanup = nullptr;
  decltype(&::ucp_worker_create) worker_create = nullptr;
  decltype(&::ucp_worker_destroy) worker_destroy = nullptr;
  decltype(&::ucp_worker_query) worker_query = nullptr;
  decltype(&::ucp_worker_release_address) worker_release_address = nullptr;
  decltype(&::ucp_worker_progress) worker_progress = nullptr;
  decltype(&::ucp_worker_get_efd) worker_get_efd = nullptr;
  decltype(&::ucp_worker_arm) worker_arm = nullptr;
  decltype(&::ucp_worker_set_am_recv_handler) worker_set_am_recv_handler = nullptr;
  decltype(&::ucp_ep_create) ep_create = nullptr;
  decltype(&::ucp_ep_close_nbx) ep_close_nbx = nullptr;
  decltype(&::ucp_ep_flush_nbx) ep_flush_nbx = nullptr;
  decltype(&::ucp_am_send_nbx) am_send_nbx = nullptr;
  decltype(&::ucp_am_recv_data_nbx) am_recv_data_nbx = nullptr;
  decltype(&::ucp_request_check_status) request_check_status = nullptr;
  decltype(&::ucp_request_free) request_free = nullptr;
  decltype(&::ucp_mem_map) mem_map = nullptr;
  decltype(&::ucp_mem_unmap) mem_unmap = nullptr;
  decltype(&::ucs_status_string) status_string = nullptr;
  decltype(&::ucs_debug_disable_signal) debug_disable_signal = nullptr;
  decltype(&::ucs_log_push_handler) log_push_handler = nullptr;
};

// Loads UCX. The error lists missing functions. Never unloaded, because UCX has threads and hooks.
Result<UcxLibrary> open_ucx_library(const char* ucp_path, const char* ucs_path);
// Loads UCX once for the process, and preserves the program's signal handlers.
Status ucx_library();
// Requires that ucx_library() succeeded.
const UcxLibrary& ucx();

// Redirects UCX's log messages of this thread until the end of the scope. They are written to Tutti's log, and the last
// error is available to explain_ucx(). Messages outside of such scopes are handled by UCX as usual.
class UcxLogScope {
 public:
  UcxLogScope();
  ~UcxLogScope();
  UcxLogScope(const UcxLogScope&) = delete;
  UcxLogScope& operator=(const UcxLogScope&) = delete;

  // Log handler for UCX.
  static ucs_log_func_rc_t take(const char* file, unsigned line, const char* function, ucs_log_level_t level,
                                const ucs_log_component_config_t* component, const char* format, va_list arguments);

 private:
  friend std::string explain_ucx(ucs_status_t status);
  UcxLogScope* outer_;
  char last_[256] = {};
};

// Returns a description of `status`, followed by UCX's last error in this scope: "Destination is unreachable (no remote
// worker address for ...)".
std::string explain_ucx(ucs_status_t status);

}  // namespace tutti
