// A libibverbs with one device of one port. Queue pairs connect, and carry nothing.
#include "tests/communicator/verbs_stand_in/stand_in.h"

#include <infiniband/verbs.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#undef ibv_query_port
#undef ibv_reg_mr

namespace {

std::atomic<bool> ethernet = true;
std::atomic<int> connected = 0, traffic_class = -1, service_level = -1;
std::atomic<std::uint32_t> queue_pairs = 0;

int poll_nothing(ibv_cq*, int, ibv_wc*) { return 0; }
int accept_notification(ibv_cq*, int) { return 0; }
int accept_send(ibv_qp*, ibv_send_wr*, ibv_send_wr**) { return 0; }
int accept_receive(ibv_qp*, ibv_recv_wr*, ibv_recv_wr**) { return 0; }

ibv_device* only_device() {
  static ibv_device device = [] {
    ibv_device made = {};
    made.node_type = IBV_NODE_CA;
    made.transport_type = IBV_TRANSPORT_IB;
    std::strcpy(made.name, "stand_in");
    return made;
  }();
  return &device;
}

}  // namespace

extern "C" {

int ibv_fork_init() { return 0; }
ibv_device** ibv_get_device_list(int* count) {
  *count = 1;
  return new ibv_device* [2] { only_device(), nullptr };
}
void ibv_free_device_list(ibv_device** list) { delete[] list; }
const char* ibv_get_device_name(ibv_device* device) { return device->name; }
ibv_context* ibv_open_device(ibv_device* device) {
  auto* context = new ibv_context{};
  context->device = device;
  context->ops.poll_cq = poll_nothing;
  context->ops.req_notify_cq = accept_notification;
  context->ops.post_send = accept_send;
  context->ops.post_recv = accept_receive;
  return context;
}
int ibv_close_device(ibv_context* context) {
  delete context;
  return 0;
}
int ibv_query_device(ibv_context*, ibv_device_attr* attributes) {
  *attributes = {};
  attributes->vendor_id = 1;
  return 0;
}
int ibv_query_port(ibv_context*, std::uint8_t port, _compat_ibv_port_attr* old) {
  if (port != 1) return EINVAL;
  auto* attributes = reinterpret_cast<ibv_port_attr*>(old);
  attributes->state = IBV_PORT_ACTIVE;
  attributes->active_mtu = IBV_MTU_4096;
  attributes->gid_tbl_len = 1;
  attributes->lid = 3;
  attributes->link_layer = ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
  return 0;
}
int _ibv_query_gid_ex(ibv_context*, std::uint32_t, std::uint32_t index, ibv_gid_entry* entry, std::uint32_t, size_t) {
  *entry = {};
  entry->gid.raw[15] = 1;
  entry->gid_index = index;
  entry->gid_type = ethernet ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_IB;
  return 0;
}
ibv_pd* ibv_alloc_pd(ibv_context* context) { return new ibv_pd{.context = context, .handle = 0}; }
int ibv_dealloc_pd(ibv_pd* domain) {
  delete domain;
  return 0;
}
ibv_mr* ibv_reg_mr(ibv_pd*, void*, size_t, int) { return new ibv_mr{}; }
int ibv_dereg_mr(ibv_mr* region) {
  delete region;
  return 0;
}
ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  return new ibv_comp_channel{.context = context, .fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .refcnt = 0};
}
int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  ::close(channel->fd);
  delete channel;
  return 0;
}
ibv_cq* ibv_create_cq(ibv_context* context, int, void*, ibv_comp_channel*, int) {
  auto* made = new ibv_cq{};
  made->context = context;
  return made;
}
int ibv_destroy_cq(ibv_cq* completions) {
  delete completions;
  return 0;
}
int ibv_get_cq_event(ibv_comp_channel*, ibv_cq**, void**) { return -1; }
void ibv_ack_cq_events(ibv_cq*, unsigned) {}
ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr*) {
  auto* made = new ibv_qp{};
  made->context = domain->context;
  made->qp_num = ++queue_pairs;
  return made;
}
int ibv_modify_qp(ibv_qp*, ibv_qp_attr* attributes, int mask) {
  if ((mask & IBV_QP_AV) == 0) return 0;
  traffic_class = attributes->ah_attr.is_global != 0 ? attributes->ah_attr.grh.traffic_class : -1;
  service_level = attributes->ah_attr.sl;
  ++connected;
  return 0;
}
int ibv_destroy_qp(ibv_qp* pair) {
  delete pair;
  return 0;
}
const char* ibv_wc_status_str(ibv_wc_status) { return "unknown"; }
const char* ibv_port_state_str(ibv_port_state) { return "active"; }

extern tutti::test::VerbsStandIn tutti_verbs_stand_in;
tutti::test::VerbsStandIn tutti_verbs_stand_in = {.set_ethernet = [](bool is) { ethernet = is; },
                                                  .connected = [] { return connected.load(); },
                                                  .traffic_class = [] { return traffic_class.load(); },
                                                  .service_level = [] { return service_level.load(); }};
}
