#include "transports/verbs/library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <string>
#include <type_traits>
#include <utility>

namespace tutti {
namespace {

constexpr const char* kPath = "libibverbs.so.1";

struct Opened {
  VerbsLibrary library;
  Status status;
  pid_t process = ::getpid();
};

const Opened& of_process() {
  static const Opened opened = [] {
    auto library = open_verbs_library(kPath);
    if (!library.ok()) return Opened{.library = {}, .status = std::move(library).status()};
    // Protects registered pages from copy-on-write after fork() on old kernels. Fails if the program has used RDMA
    // before.
    (void)library.value().fork_init();
    return Opened{.library = library.value(), .status = {}};
  }();
  return opened;
}

}  // namespace

Result<VerbsLibrary> open_verbs_library(const char* path) {
  void* opened = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr)
    return unsupported(std::string("cannot load libibverbs: ") + ::dlerror() +
                       " (Debian: apt-get install libibverbs1 ibverbs-providers)");
  VerbsLibrary all;
  std::string missing;
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(opened, name));
    if (function == nullptr) missing += std::string(missing.empty() ? "" : ", ") + name;
  };
  find("ibv_fork_init", all.fork_init);
  find("ibv_get_device_list", all.get_device_list);
  find("ibv_free_device_list", all.free_device_list);
  find("ibv_get_device_name", all.get_device_name);
  find("ibv_open_device", all.open_device);
  find("ibv_close_device", all.close_device);
  find("ibv_query_device", all.query_device);
  find("ibv_query_port", all.query_port);
  find("_ibv_query_gid_ex", all.query_gid);
  find("ibv_alloc_pd", all.alloc_pd);
  find("ibv_dealloc_pd", all.dealloc_pd);
  find("ibv_reg_mr", all.reg_mr);
  find("ibv_dereg_mr", all.dereg_mr);
  find("ibv_create_comp_channel", all.create_comp_channel);
  find("ibv_destroy_comp_channel", all.destroy_comp_channel);
  find("ibv_create_cq", all.create_cq);
  find("ibv_destroy_cq", all.destroy_cq);
  find("ibv_get_cq_event", all.get_cq_event);
  find("ibv_ack_cq_events", all.ack_cq_events);
  find("ibv_create_qp", all.create_qp);
  find("ibv_modify_qp", all.modify_qp);
  find("ibv_destroy_qp", all.destroy_qp);
  find("ibv_wc_status_str", all.wc_status_str);
  find("ibv_port_state_str", all.port_state_str);
  all.reg_dmabuf_mr = reinterpret_cast<decltype(all.reg_dmabuf_mr)>(::dlsym(opened, "ibv_reg_dmabuf_mr"));
  if (!missing.empty())
    return unsupported(std::string(path) + " is too old: it has no " + missing + "; use rdma-core 32 or newer");
  return all;
}

Status verbs_library() { return of_process().status.copy(); }

const VerbsLibrary& ibv() { return of_process().library; }

bool releases_verbs() { return of_process().process == ::getpid(); }

}  // namespace tutti
