#include "transports/net_plugin/end.h"

#include <sys/random.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cstring>

#include "src/base/log.h"

namespace tutti {
namespace {

constexpr std::int64_t kLeaveMs = 200;           // Maximum wait for a peer that does not answer.
constexpr std::int64_t kFirstSleepNs = 20'000;   // Plugins have no descriptors, so they are polled,
constexpr std::int64_t kMaxSleepNs = 1'000'000;  // at increasing intervals.
constexpr int kConnectionsOfEnd = 2;

std::string where(const NetPlugin::Device& device) {
  return " on device " + std::to_string(device.index) + " (" + device.name + ")";
}

}  // namespace

Result<std::unique_ptr<NetEnd>> NetEnd::make(NetEngine& engine) {
  std::unique_ptr<NetEnd> end(new NetEnd(engine, engine.next_device()));
  end->timer_ = File(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!end->timer_) return system_error("make a timer for a network plugin (raise the limit with ulimit -n)");
  if (::getrandom(&end->own_.token, sizeof end->own_.token, 0) != sizeof end->own_.token)
    return system_error("getrandom");
  const nccl_net::Code code = engine.plugin().listen(engine.context(), end->device_.properties.index,
                                                     end->own_.handle.data(), &end->listening_);
  if (code == nccl_net::kSuccess && end->listening_ != nullptr) return end;
  end->listening_ = nullptr;  // Results of a failed call are not valid.
  if (code != nccl_net::kSuccess) return engine.plugin().error("listen", code, end->where_);
  return Status(Code::system, "network plugin " + engine.plugin().description() + ": listen" + end->where_ +
                                  " returned no connection");
}

NetEnd::NetEnd(NetEngine& engine, NetEngine::Device& device)
    : engine_(engine),
      device_(device),
      where_(where(device.properties)),
      sending_(engine, NetRing::Direction::sending, where_),
      receiving_(engine, NetRing::Direction::receiving, where_) {
  ++device_.carriers;
}

NetEnd::~NetEnd() {
  if (listening_ != nullptr && engine_.of_this_process()) {
    const nccl_net::Code code = engine_.plugin().table().close_listening(listening_);
    if (code != nccl_net::kSuccess)
      log(LogLevel::warn, "%s", engine_.plugin().error("closeListen", code, where_).message().c_str());
  }
  --device_.carriers;
  if (begun_) device_.connections -= kConnectionsOfEnd;
}

// ---- Connecting ----

std::vector<std::byte> NetEnd::address() const {
  const auto bytes = std::as_bytes(std::span(&own_, 1));
  return {bytes.begin(), bytes.end()};
}

Status NetEnd::connect(std::span<const std::byte> address) {
  if (address.size() != sizeof peer_) return remote_error("received a malformed address of a network plugin");
  std::memcpy(&peer_, address.data(), sizeof peer_);
  if (peer_.version != own_.version || peer_.frames != own_.frames || peer_.frame_bytes != own_.frame_bytes)
    return remote_error("the peer runs another version of tutti (network plugin address version " +
                        std::to_string(peer_.version) + ")");
  return {};
}

Status NetEnd::begin() {
  const int max = device_.properties.max_connections;
  if (max > 0 && device_.connections + kConnectionsOfEnd > max)
    return unsupported("network plugin " + engine_.plugin().description() + where_ + " permits " + std::to_string(max) +
                       " connections, and all are in use");
  begun_ = true;
  device_.connections += kConnectionsOfEnd;
  return {};
}

// Both ends connect and accept at the same time.
Status NetEnd::make_connections() {
  if (!begun_) TUTTI_CHECK_OK(begin());
  if (!sending_.is_open()) TUTTI_CHECK_OK(make_sending());
  if (!receiving_.is_open()) TUTTI_CHECK_OK(make_receiving());
  return {};
}

Status NetEnd::make_sending() {
  void* connection = nullptr;
  const nccl_net::Code code =
      engine_.plugin().connect(engine_.context(), device_.properties.index, peer_.handle.data(), &connection);
  if (code != nccl_net::kSuccess) return engine_.plugin().error("connect", code, where_);
  return connection == nullptr ? Status() : sending_.open(connection);
}

Status NetEnd::make_receiving() {
  const NetPlugin& plugin = engine_.plugin();
  void* connection = nullptr;
  nccl_net::Code code = plugin.accept(listening_, &connection);
  if (code != nccl_net::kSuccess) return plugin.error("accept", code, where_);
  if (connection == nullptr) return {};
  TUTTI_CHECK_OK(receiving_.open(connection));
  code = plugin.table().close_listening(std::exchange(listening_, nullptr));
  return code == nccl_net::kSuccess ? Status() : plugin.error("closeListen", code, where_);
}

// ---- Lanes ----

void NetEnd::register_reader(std::uint32_t lane, const HalfLane& reading) {
  reading_[lane] = {.memory = reading.memory.slots, .view = reading.view};
  next_reading_ = std::max(next_reading_, lane + 1);
}

void NetEnd::attach(std::uint32_t lane, const HalfLane& writing) { writing_[lane] = writing.memory.slots; }

LaneMemory NetEnd::forget(std::uint32_t lane, LaneEnd which) {
  LaneMemory freed;
  if (which == LaneEnd::writer) {
    if (auto node = writing_.extract(lane)) freed = std::move(node.mapped());
    return freed;
  }
  credits_.erase(lane);
  if (auto node = reading_.extract(lane)) freed = std::move(node.mapped().memory);
  return freed;
}

// ---- Progress ----

Status NetEnd::advance(CarrierEvents& events) {
  const bool has_lanes = begun_ || !reading_.empty() || !writing_.empty();
  if (has_lanes && !connected() && send_error_.empty()) {
    const Status made = make_connections();
    if (!made.ok()) send_error_ = receive_error_ = made.message();
  }
  if (connected()) {
    TUTTI_CHECK_OK(receive_frames(events));
    if (send_error_.empty()) {
      const Status sent = send_frames();
      if (!sent.ok()) send_error_ = sent.message();
    }
  }
  for (const auto& [lane, messages] : left_) events.left(lane, messages);
  left_.clear();
  if (peer_left_) return {};  // The TCP connection reports that.
  if (!receive_error_.empty()) return remote_error(receive_error_);
  return send_error_.empty() ? Status() : remote_error(send_error_);
}

bool NetEnd::sent_all() const { return sending_.idle() && filled_bytes_ == 0 && !message_ && credits_.empty(); }

// An end that shares lanes with the other end calls advance() until it is connected: connect() of one end needs
// accept() of the other.
bool NetEnd::flushed() const {
  if (peer_left_) return true;
  if (!connected()) return reading_.empty() && writing_.empty();
  return sent_all() && left_.empty() && !receiving_.idle();
}

// ---- Leaving ----

// Each end completes the receives of the other one, because some plugins do not close connections with requests.
bool NetEnd::finish() {
  if (!connected() || !send_error_.empty() || !receive_error_.empty()) return true;
  if (!std::exchange(leaving_, true)) leave_deadline_ = Deadline::after_ms(kLeaveMs);
  const bool done = goodbyes_ == kNetFrames && sent_all() && peer_left_ && receiving_.idle();
  return done || leave_deadline_.passed();
}

// ---- Waiting ----

bool NetEnd::arm() {
  if (!left_.empty()) return false;
  itimerspec when = {};
  const bool has_lanes = begun_ || !reading_.empty() || !writing_.empty();
  if (has_lanes && !(peer_left_ && receiving_.idle())) {
    sleep_ns_ = std::exchange(moved_, false) ? kFirstSleepNs : std::clamp(2 * sleep_ns_, kFirstSleepNs, kMaxSleepNs);
    when.it_value.tv_nsec = sleep_ns_;
  }
  return ::timerfd_settime(timer_.get(), 0, &when, nullptr) == 0;
}

}  // namespace tutti
