// libibverbs.so.1, loaded when it is first needed, so that programs run without it.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#include "src/base/status.h"

namespace tutti {

// Functions not listed here are inline functions of verbs.h that call through a device's own table (post_send,
// poll_cq, ...).
struct VerbsLibrary {
  decltype(&ibv_fork_init) fork_init = nullptr;
  decltype(&::ibv_get_device_list) get_device_list = nullptr;
  decltype(&ibv_free_device_list) free_device_list = nullptr;
  decltype(&ibv_get_device_name) get_device_name = nullptr;
  decltype(&ibv_open_device) open_device = nullptr;
  decltype(&ibv_close_device) close_device = nullptr;
  decltype(&ibv_query_device) query_device = nullptr;
  int (*query_port)(ibv_context*, std::uint8_t port, ibv_port_attr*) = nullptr;  // Does not set the newest fields.
  decltype(&_ibv_query_gid_ex) query_gid = nullptr;
  decltype(&ibv_alloc_pd) alloc_pd = nullptr;
  decltype(&ibv_dealloc_pd) dealloc_pd = nullptr;
  ibv_mr* (*reg_mr)(ibv_pd*, void* address, std::size_t length, int access) = nullptr;
  // Null before rdma-core 34.
  ibv_mr* (*reg_dmabuf_mr)(ibv_pd*, std::uint64_t offset, std::size_t length, std::uint64_t address, int descriptor,
                           int access) = nullptr;
  decltype(&ibv_dereg_mr) dereg_mr = nullptr;
  decltype(&ibv_create_comp_channel) create_comp_channel = nullptr;
  decltype(&ibv_destroy_comp_channel) destroy_comp_channel = nullptr;
  decltype(&ibv_create_cq) create_cq = nullptr;
  decltype(&ibv_destroy_cq) destroy_cq = nullptr;
  decltype(&ibv_get_cq_event) get_cq_event = nullptr;
  decltype(&ibv_ack_cq_events) ack_cq_events = nullptr;
  decltype(&ibv_create_qp) create_qp = nullptr;
  decltype(&ibv_modify_qp) modify_qp = nullptr;
  decltype(&ibv_destroy_qp) destroy_qp = nullptr;
  decltype(&ibv_wc_status_str) wc_status_str = nullptr;
  decltype(&ibv_port_state_str) port_state_str = nullptr;
};

// Loads libibverbs. The error lists missing functions. Never unloaded, because drivers stay loaded, too.
Result<VerbsLibrary> open_verbs_library(const char* path);
// Loads libibverbs once for the process.
Status verbs_library();
// Requires that verbs_library() succeeded.
const VerbsLibrary& ibv();
// False in a forked child: releasing inherited objects there would end the parent's.
bool releases_verbs();

}  // namespace tutti
