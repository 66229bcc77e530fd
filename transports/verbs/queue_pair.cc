#include "transports/verbs/queue_pair.h"

#include <fcntl.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tutti {
namespace {

constexpr std::uint32_t kPacketNumbers = 1 << 24;
constexpr std::uint8_t kMaxHops = 64;
// Retry count for a receiver without posted buffers: unlimited. Buffers are always posted, see PortConnection.
constexpr std::uint8_t kForEver = 7;
constexpr std::uint8_t kRoomTimer = 12;  // 0.64 ms

// Advice for a failed completion.
std::string advice(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
      return ": the other rank has ended, or does not answer on this path: see whether its port is up, and whether the "
             "two "
             "addresses reach each other (TUTTI_IB_HCA and TUTTI_IB_GID_INDEX choose others)";
    case IBV_WC_LOC_QP_OP_ERR: return ": the device could not send: see whether its port is up";
    case IBV_WC_WR_FLUSH_ERR: return ": the connection had ended: the device or its port may have gone";
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_INV_REQ_ERR: return ": the other end's device refuses to write where its rank asked for it";
    default: return "";
  }
}

}  // namespace

void release_channel(ibv_comp_channel* channel) {
  if (releases_verbs()) (void)ibv().destroy_comp_channel(channel);
}
void release_completions(ibv_cq* completions) {
  if (releases_verbs()) (void)ibv().destroy_cq(completions);
}
void release_queue_pair(ibv_qp* queue_pair) {
  if (releases_verbs()) (void)ibv().destroy_qp(queue_pair);
}

Status QueuePair::refused(const std::string& action, int error) const {
  errno = error;
  return system_error(action + " on RDMA device " + describe());
}

Result<QueuePair> QueuePair::create(const VerbsPort& port, const VerbsOptions& options, const Depth& depth) {
  QueuePair made;
  made.port_ = port;
  made.options_ = options;
  ibv_context* context = port.device->context();
  errno = 0;
  made.channel_.reset(ibv().create_comp_channel(context));
  if (!made.channel_) return made.refused("make a completion channel", errno);
  const int flags = ::fcntl(made.descriptor(), F_GETFL);
  if (flags < 0 || ::fcntl(made.descriptor(), F_SETFL, flags | O_NONBLOCK) != 0)
    return made.refused("make a completion channel that does not block", errno);
  // The queue must hold a completion for each send, because failed sends complete individually.
  const auto entries = static_cast<int>(depth.sends + depth.receives);
  made.completions_.reset(ibv().create_cq(context, entries, nullptr, made.channel_.get(), 0));
  if (!made.completions_) return made.refused("make a completion queue of " + std::to_string(entries), errno);

  ibv_qp_init_attr wanted = {};
  wanted.send_cq = wanted.recv_cq = made.completions_.get();
  wanted.qp_type = IBV_QPT_RC;
  for (std::uint32_t inline_bytes = depth.inline_bytes;; inline_bytes /= 2) {
    // Set anew for each attempt, because create_qp() overwrites it.
    wanted.cap = {depth.sends, depth.receives, 1, 1, inline_bytes};
    made.queue_pair_.reset(ibv().create_qp(port.device->domain(), &wanted));
    if (made.queue_pair_ || inline_bytes == 0) break;
  }
  if (!made.queue_pair_) return made.refused("make a queue pair", errno);
  made.inline_bytes_ = wanted.cap.max_inline_data;

  ibv_qp_attr initial = {};
  initial.qp_state = IBV_QPS_INIT;
  initial.port_num = port.number;
  initial.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  if (depth.readable) initial.qp_access_flags |= IBV_ACCESS_REMOTE_READ;
  const int error = ibv().modify_qp(made.queue_pair_.get(), &initial,
                                    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (error != 0) return made.refused("prepare a queue pair", error);
  // Random initial packet numbers distinguish packets of an earlier connection with the same queue pair number.
  const ssize_t got = ::getrandom(&made.first_packet_, sizeof made.first_packet_, 0);
  made.first_packet_ %= got > 0 ? kPacketNumbers : 1;
  return made;
}

QueuePairAddress QueuePair::address() const {
  QueuePairAddress address;
  address.queue_pair = queue_pair_.get()->qp_num;
  address.first_packet = first_packet_;
  std::copy(std::begin(port_.gid.raw), std::end(port_.gid.raw), address.gid.begin());
  address.lid = port_.lid;
  address.mtu = static_cast<std::uint8_t>(port_.mtu);
  address.ethernet = port_.ethernet ? 1 : 0;
  return address;
}

// RoCE uses the GID. InfiniBand uses the LID, and also the GID in another subnet.
ibv_qp_attr QueuePair::path_to(const QueuePairAddress& other) const {
  ibv_qp_attr attributes = {};
  attributes.ah_attr.port_num = port_.number;
  attributes.ah_attr.dlid = other.lid;
  if (!port_.ethernet) attributes.ah_attr.sl = options_.service_level;
  constexpr std::size_t kSubnetBytes = 8;
  const bool same_subnet = std::memcmp(other.gid.data(), port_.gid.raw, kSubnetBytes) == 0;
  if (!port_.ethernet && same_subnet) return attributes;
  attributes.ah_attr.is_global = 1;
  ibv_global_route& route = attributes.ah_attr.grh;
  std::copy(other.gid.begin(), other.gid.end(), std::begin(route.dgid.raw));
  route.sgid_index = static_cast<std::uint8_t>(port_.gid_index);
  route.hop_limit = kMaxHops;
  route.traffic_class = options_.traffic_class;
  return attributes;
}

Status QueuePair::connect(const QueuePairAddress& other) {
  ibv_gid gid = {};
  std::copy(other.gid.begin(), other.gid.end(), std::begin(gid.raw));
  other_ = tutti::describe(gid);
  if (other.mtu < IBV_MTU_256 || other.mtu > IBV_MTU_4096 || other.queue_pair >= kPacketNumbers ||
      other.first_packet >= kPacketNumbers || other.ethernet > 1)
    return remote_error("the other end of " + describe() + " has sent no address of an RDMA port");
  if ((other.ethernet != 0) != port_.ethernet)
    return unsupported("InfiniBand and RoCE do not reach each other: " + describe() +
                       "; let TUTTI_IB_HCA name ports of one kind on all hosts");
  ibv_qp_attr receiving = path_to(other);
  receiving.qp_state = IBV_QPS_RTR;
  receiving.path_mtu = std::min(port_.mtu, static_cast<ibv_mtu>(other.mtu));
  receiving.dest_qp_num = other.queue_pair;
  receiving.rq_psn = other.first_packet;
  receiving.max_dest_rd_atomic = 1;
  receiving.min_rnr_timer = kRoomTimer;
  int error = ibv().modify_qp(queue_pair_.get(), &receiving,
                              IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (error != 0) return refused("find the path", error);
  ibv_qp_attr sending = {};
  sending.qp_state = IBV_QPS_RTS;
  sending.timeout = options_.timeout;
  sending.retry_cnt = options_.retry_count;
  sending.rnr_retry = kForEver;
  sending.sq_psn = first_packet_;
  sending.max_rd_atomic = 1;
  error = ibv().modify_qp(
      queue_pair_.get(), &sending,
      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  if (error != 0) return refused("connect", error);
  return {};
}

Status QueuePair::post(ibv_send_wr& first) {
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(queue_pair_.get(), &first, &bad);
  return error == 0 ? Status() : refused("send", error);
}

Status QueuePair::post(ibv_recv_wr& first) {
  ibv_recv_wr* bad = nullptr;
  const int error = ibv_post_recv(queue_pair_.get(), &first, &bad);
  return error == 0 ? Status() : refused("make room for messages", error);
}

Result<int> QueuePair::poll(ibv_wc* completions, int max) {
  const int count = ibv_poll_cq(completions_.get(), max, completions);
  if (count < 0) return refused("see what has been completed", EIO);
  return count;
}

Status QueuePair::arm() {
  ibv_cq* queue = nullptr;
  void* unused = nullptr;
  while (ibv().get_cq_event(channel_.get(), &queue, &unused) == 0) ibv().ack_cq_events(queue, 1);
  const int error = ibv_req_notify_cq(completions_.get(), 0);
  return error == 0 ? Status() : refused("request notification of completions", error);
}

std::string QueuePair::describe() const { return port_.describe() + (other_.empty() ? "" : " to " + other_); }

Status QueuePair::failure(const ibv_wc& completion) const {
  return remote_error("RDMA device " + describe() + ": " + ibv().wc_status_str(completion.status) +
                      advice(completion.status));
}

}  // namespace tutti
