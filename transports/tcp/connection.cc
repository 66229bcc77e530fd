#include "transports/tcp/connection.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "src/base/atomic.h"
#include "src/base/caught.h"
#include "src/base/clock.h"

namespace tutti {
namespace {

constexpr std::int64_t kLookNs = 200'000'000;  // Minimum time between two checks of TCP's state.
constexpr std::int64_t kFinishMs = 3000;
constexpr std::int64_t kLastMessagesMs = 100;
constexpr int kFinishPollMs = 2;  // Acknowledgements do not wake poll(2).

// Probes an idle connection after 1 s. The kernel closes it after three unanswered probes, 1 s apart.
void keep_alive(const Socket& socket) {
  const auto set = [&socket](int level, int option, int value) {
    (void)::setsockopt(socket.get(), level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_NODELAY, 1);
}

}  // namespace

TcpConnection::TcpConnection(Socket socket, bool odd, std::string route, CarrierOptions carrier_options,
                             const Seal& seal)
    : stream_(std::move(socket), seal, odd),
      route_(std::move(route)),
      next_context_(odd ? 1 : 2),
      requires_carrier_(carrier_options.required),
      instead_(std::move(carrier_options.instead)),
      lanes_([this](std::size_t bytes) -> Result<LaneMemory> {
        if (carrier_) return carrier_->allocate(bytes);
        return HalfLane::allocate(bytes);
      }),
      carrier_(std::move(carrier_options.carrier)) {
  keep_alive(stream_.socket());
  outgoing_.reserve(kMaxOutgoing);
  send_carrier_offer();
}

TcpConnection::~TcpConnection() {
  TcpConnection* const self = this;
  finish({&self, 1});
}

// ---- Lanes ----

Result<LaneView> TcpConnection::open(std::uint32_t context, const LaneSpec& spec, LaneEnd end) {
  const std::lock_guard lock(mutex_);
  HalfLane* half = TUTTI_TRY(lanes_.half(context, spec, end));
  std::uint32_t number = 0;
  if (end == LaneEnd::reader || !lanes_.number(*half, number)) return half->view;
  half->ready = data_path_ == DataPath::tcp;
  std::vector<std::byte> payload(sizeof spec);
  std::memcpy(payload.data(), &spec, sizeof spec);
  notify(TcpFrameKind::lane, context, number, std::move(payload));
  return half->view;
}

std::optional<LaneView> TcpConnection::find(std::uint32_t context, const LaneSpec& spec) {
  const std::lock_guard lock(mutex_);
  const HalfLane* half = lanes_.known(context, spec);
  return half == nullptr ? std::nullopt : std::optional(half->view);
}

Result<LaneMemory> TcpConnection::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (carrier_) return carrier_->allocate(bytes);
  return HalfLane::allocate_shared(bytes);
}

void TcpConnection::attach_memory(std::uint32_t context, LaneRegion region) {
  const std::lock_guard lock(mutex_);
  lanes_.attach_memory(context, std::move(region));
}

Result<RegisteredRegion> TcpConnection::register_device_memory(const DeviceRegion& region) {
  const std::lock_guard lock(mutex_);
  if (!carrier_ || (data_path_ != DataPath::carrier && !requires_carrier_))
    return unsupported("tcp copies what it sends and receives, which takes memory of the host");
  return carrier_->register_device_memory(region);
}

bool TcpConnection::supports_ll() {
  const std::lock_guard lock(mutex_);
  return carrier_ != nullptr && carrier_->supports_ll();
}

// Copies messages that are being sent directly from slots.
void TcpConnection::close(std::uint32_t context) {
  const std::lock_guard lock(mutex_);
  end_context(context);
  reap_closed_lanes();
}

void TcpConnection::end_context(std::uint32_t context) {
  if (auto left = notes_.extract(context)) {
    waiting_notes_.fetch_sub(left.mapped().size());
    for (const WaitingNote& unread : left.mapped()) {
      if (unread.passes != 0) end_context(unread.passes);
    }
  }
  for (std::size_t i = first_; i < outgoing_.size(); ++i) {
    Outgoing& out = outgoing_[i];
    if (out.context != context || out.data == nullptr) continue;
    out.own.assign(out.data, out.data + out.header.bytes);
    out.data = nullptr;
  }
  if (into_ != nullptr && into_->context == context) into_ = nullptr;  // Drops the rest of the message as it arrives.
  lanes_.close(context);
}

// Frees the lanes of ended communicators. Memory stays while the carrier uses it: outgoing messages until left(), and
// slots that the other end may write until that end has closed its half.
void TcpConnection::reap_closed_lanes() {
  const bool carried = data_path_ == DataPath::carrier;
  if (carried && has_ended()) return;
  std::vector<std::uint32_t> over;
  for (LaneTable::Ended& ended : lanes_.ended()) {
    ended.unnumbered.clear();
    const auto gone = [](const auto& lane) { return lane.second->left == lane.second->carried; };
    if (carried && !std::all_of(ended.writing.begin(), ended.writing.end(), gone)) continue;
    for (const auto& [number, half] : ended.writing) {
      if (carried) carrier_->forget(number, LaneEnd::writer);
    }
    ended.writing.clear();
    if (!std::exchange(ended.reported, true)) notify(TcpFrameKind::closed, ended.context, 0, {});
    const bool closed_there = lanes_.closed_there(ended.context);
    if (carried && !closed_there) continue;
    for (const auto& [number, half] : ended.reading) {
      if (carried) carrier_->forget(number, LaneEnd::reader);
    }
    ended.reading.clear();
    if (closed_there) over.push_back(ended.context);
  }
  for (const std::uint32_t context : over) lanes_.drop(context);
}

std::uint32_t TcpConnection::new_context() {
  const std::lock_guard lock(mutex_);
  return std::exchange(next_context_, next_context_ + 2);
}

// ---- Notes ----

void TcpConnection::send(std::uint32_t context, std::span<const std::byte> note, std::uint32_t passes) {
  const std::lock_guard lock(mutex_);
  if (has_ended()) return;
  notify(TcpFrameKind::note, context, passes, {note.begin(), note.end()});
  exchange();
}

std::optional<Note> TcpConnection::take(std::uint32_t context) {
  const std::lock_guard lock(mutex_);
  const auto found = notes_.find(context);
  if (found == notes_.end() || found->second.empty()) return std::nullopt;
  Note note = std::move(found->second.front().note);
  found->second.pop_front();
  waiting_notes_.fetch_sub(1);
  return note;
}

// ---- Progress ----

bool TcpConnection::advance() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return lock && exchange_and_compare();
}

bool TcpConnection::advance_all() {
  const std::lock_guard lock(mutex_);
  return exchange_and_compare();
}

bool TcpConnection::exchange_and_compare() {
  const std::uint64_t before = moves_;
  exchange();
  return moves_ != before;
}

void TcpConnection::push() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || lost()) return;
  if (data_path_ == DataPath::carrier) return exchange();
  while (send_some()) {
  }
}

void TcpConnection::exchange() {
  do {
    again_ = false;
    if (has_ended()) return finish_ending();
    if (data_path_ == DataPath::carrier) {
      const Status carried = move_by_carrier();
      if (!carried.ok()) {
        while (!has_ended() && receive_some()) {  // Reads the last notes of the other end, if any.
        }
        return end_connection(advised(carried.message()));
      }
    }
    while (send_some()) {
    }
    while (!has_ended() && receive_some()) {
    }
    // Notes that have arrived are kept, since they may say why the other end leaves.
    if (broken_ && data_path_ != DataPath::carrier) {
      while (send_some()) {  // Informs the other end.
      }
      return end_connection(broken_->message());
    }
  } while (again_);
  if (!lanes_.ended().empty()) reap_closed_lanes();
}

bool TcpConnection::drained(std::uint32_t context) {
  const std::lock_guard lock(mutex_);
  if (lost() || !has_unsent(context)) return true;
  exchange();
  return lost() || !has_unsent(context);
}

bool TcpConnection::has_unsent(std::uint32_t context) const {
  if (stream_.held() > 0) return true;
  const auto belongs = [&](const Outgoing& out) { return out.context == context; };
  if (std::any_of(outgoing_.begin() + static_cast<std::ptrdiff_t>(first_), outgoing_.end(), belongs)) return true;
  if (std::any_of(unsent_.begin(), unsent_.end(), belongs)) return true;
  const LaneTable::Numbers &writing = lanes_.writing(), &reading = lanes_.reading();
  const auto owes = [&](const LaneTable::Numbered& lane) {
    return lane.half->context == context && lane.half->send_all;
  };
  if (std::any_of(reading.begin(), reading.end(), owes)) return true;
  if (data_path_ == DataPath::carrier && !carrier_->flushed()) return true;
  return std::any_of(writing.begin(), writing.end(), [&](const LaneTable::Numbered& lane) {
    const HalfLane& half = *lane.half;
    if (half.context != context) return false;
    return load_acquire(&half.view.words->posted) != (data_path_ == DataPath::carrier ? half.left : half.carried);
  });
}

void TcpConnection::wait(int timeout_ms) {
  std::array<pollfd, kPolled> polled;
  if (prepare_wait(polled)) ::poll(polled.data(), polled.size(), timeout_ms);
}

bool TcpConnection::prepare_wait(std::span<pollfd, kPolled> polled) {
  polled[0] = {stream_.socket().get(), POLLIN, 0};
  polled[1] = {-1, POLLIN, 0};
  const std::lock_guard lock(mutex_);
  if (has_ended()) polled[0].fd = -1;
  if (first_ < outgoing_.size() || !unsent_.empty() || stream_.held() > 0) polled[0].events |= POLLOUT;
  if (data_path_ != DataPath::carrier || lost()) return true;
  if (!carrier_->arm()) return false;
  polled[1].fd = carrier_->descriptor();
  return true;
}

// ---- The end ----

// Later calls of exchange() wait for the last messages of the carrier, which a call may need.
void TcpConnection::end_connection(const std::string& why) {
  if (has_ended()) return;
  reason_ = why;
  last_messages_by_ = Deadline::after_ms(kLastMessagesMs);
  finish_ending();
}

void TcpConnection::finish_ending() {
  if (lost()) return;
  if (data_path_ == DataPath::carrier && !finish_carrier() && !last_messages_by_->passed()) return;
  lost_.store(true, std::memory_order_release);
  (void)::shutdown(stream_.socket().get(), SHUT_WR);  // Notifies the other end, which sees the end of the stream.
}

std::string TcpConnection::reason() {
  const std::lock_guard lock(mutex_);
  return reason_ + " (" + route_ + ")";
}

// TCP_USER_TIMEOUT cannot do this: it also ends a connection whose peer is alive and does not read for a while.
void TcpConnection::check_liveness(std::int64_t now_ns) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || has_ended() || now_ns - looked_ns_ < kLookNs) return;
  looked_ns_ = now_ns;
  tcp_info info = {};
  socklen_t bytes = sizeof info;
  if (::getsockopt(stream_.socket().get(), IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return;
  TcpSample sample;
  sample.now_ns = now_ns;
  sample.unacknowledged = stream_.unacknowledged();
  sample.acknowledged = stream_.sent() - sample.unacknowledged;
  sample.in_flight = info.tcpi_unacked;
  sample.window = info.tcpi_snd_wnd;  // 0 before Linux 5.4.
  sample.retransmits = info.tcpi_retransmits;
  sample.probes = info.tcpi_probes;
  const std::int64_t silent_ns = silence_.update(sample);
  if (silent_ns == 0) return;
  int error = 0;  // An ICMP error, for example, which does not end a TCP connection by itself.
  bytes = sizeof error;
  (void)::getsockopt(stream_.socket().get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
  const std::string reason = error == 0 ? "" : std::string(", ") + std::strerror(error);
  end_connection("no answer for " + std::to_string(silent_ns / 1'000'000'000) + " s" + reason);
  reset();
}

// Sends a TCP reset. It reaches the peer at once if only the path from the peer is cut. A FIN would wait behind all
// unacknowledged data.
void TcpConnection::reset() {
  sockaddr none = {};
  none.sa_family = AF_UNSPEC;
  (void)::connect(stream_.socket().get(), &none, sizeof none);
}

void TcpConnection::finish(std::span<TcpConnection* const> connections) {
  const Deadline deadline = Deadline::after_ms(kFinishMs);
  // Runs in destructors: without memory it does not wait.
  (void)caught([&]() -> Status {
    std::vector<pollfd> polled;
    for (;;) {
      polled.clear();
      for (TcpConnection* connection : connections) {
        pollfd one = {connection->stream_.socket().get(), POLLIN, 0};
        if (!connection->finish_some(one)) polled.push_back(one);
      }
      if (polled.empty() || deadline.passed()) return {};
      ::poll(polled.data(), polled.size(), kFinishPollMs);
    }
  });
  for (TcpConnection* connection : connections) {
    const std::lock_guard lock(connection->mutex_);
    connection->finished_ = true;
  }
}

// Closing a socket that still receives data resets the connection, and the peer could lose data that it has not read.
// Therefore shuts down the sending side first and reads until the peer has acknowledged everything.
bool TcpConnection::finish_some(pollfd& polled) {
  const std::lock_guard lock(mutex_);
  if (finished_ || !stream_.socket()) return true;
  if (!stopped_ || has_ended()) exchange();
  while (!has_ended() && receive_some()) {
  }
  if (lost()) return true;
  if (has_ended()) {
    polled.fd = -1;  // The end of the stream would wake poll(2) at once.
    return false;
  }
  const bool sent = unsent_.empty() && first_ == outgoing_.size() && stream_.held() == 0;
  const bool carried = data_path_ != DataPath::carrier || (sent && carrier_->finish());
  if (!stopped_ && carried && sent) {
    stopped_ = true;
    if (::shutdown(stream_.socket().get(), SHUT_WR) != 0) return true;
  }
  return stopped_ && stream_.unacknowledged() == 0;
}

}  // namespace tutti
