#include "src/communicator/membership/lane_connections.h"

#include <algorithm>

namespace tutti {
namespace {

// Payload of a lane frame.
struct LaneOffer {
  LaneSpec spec;
  LaneAddress address;
};
static_assert(sizeof(LaneOffer) == 56);

}  // namespace

// Returns the rank whose memory holds the lane: the reader, so that polling stays local. A pair of lanes is in memory
// of the forward lane's reader.
Rank LaneConnections::owner(const LaneSpec& spec) { return spec.reader; }

Status LaneConnections::offer(const LaneSpec& spec) { return make(spec).status(); }

Result<bool> LaneConnections::make(const LaneSpec& spec) {
  if (ends_.contains(spec)) return true;
  if (mesh_.is_remote(other(spec))) {
    TUTTI_CHECK_OK(attach_remote(spec));
    return true;
  }
  if (owner(spec) != self_) return true;
  auto made = made_.find(spec);
  if (made == made_.end()) {
    const LaneAddress address = TUTTI_TRY(transport_.create(spec));
    made = made_.emplace(spec, address).first;
  }
  if (spec.writer != self_) {
    const bool reported = TUTTI_TRY(notify(spec, made->second));
    if (!reported) return false;
  }
  TUTTI_CHECK_OK(attach(spec, self_, made->second));
  made_.erase(made);
  return true;
}

// The first lane of a segment that is sent successfully also passes the segment's descriptor.
Result<bool> LaneConnections::notify(const LaneSpec& spec, const LaneAddress& address) {
  const Frame frame = frame_of(FrameKind::lane, LaneOffer{spec, address});
  const std::pair segment = {spec.writer, address.segment};
  const int descriptor = passed_.contains(segment) ? -1 : transport_.segment(address.segment).descriptor();
  const bool sent = TUTTI_TRY(mesh_.try_send(spec.writer, frame, descriptor));
  if (!sent) return false;
  passed_.insert(segment);
  wake_if_asleep(board_.sleep_word(spec.writer));
  return true;
}

// Processes received frames first, since the other end may wait for space in its socket too.
Result<bool> LaneConnections::ready(const LaneSpec& spec) {
  if (ends_.contains(spec)) return true;
  TUTTI_CHECK_OK(collect(other(spec)));
  if (owner(spec) == self_) return make(spec);
  const auto found = addresses_.find(spec);
  if (found == addresses_.end()) return false;
  TUTTI_CHECK_OK(attach(spec, owner(spec), found->second));
  addresses_.erase(found);
  return true;
}

Status LaneConnections::collect(Rank peer) {
  for (;;) {
    auto received = TUTTI_TRY(mesh_.receive(peer));
    if (!received) return {};
    TUTTI_CHECK_OK(process(peer, std::move(*received)));
  }
}

Status LaneConnections::process(Rank peer, ReceivedFrame received) {
  if (received.frame.kind == FrameKind::region) return regions_.adopt(peer, std::move(received));
  if (received.frame.kind == FrameKind::withdrawal) return regions_.drop(peer, received.frame);
  if (received.frame.kind == FrameKind::proposal || received.frame.kind == FrameKind::refusal)
    return proposals_.process(peer, std::move(received));
  if (received.frame.kind == FrameKind::socket || received.frame.kind == FrameKind::memory) {
    passages_[{peer, received.frame.kind}].push_back(std::move(received));
    return {};
  }
  const auto lane = payload_of<LaneOffer>(received.frame);
  if (received.frame.kind != FrameKind::lane || !lane)
    return invalid_usage("rank " + std::to_string(peer) + " sent an unknown control message");
  if (owner(lane->spec) != peer || lane->spec.writer != self_) {
    return invalid_usage("rank " + std::to_string(peer) + " offered a lane from rank " +
                         std::to_string(lane->spec.writer) + " to rank " + std::to_string(lane->spec.reader));
  }
  if (received.file) {
    Segment memory = TUTTI_TRY(Segment::adopt(std::move(received.file), lane->address.segment_bytes));
    TUTTI_CHECK_OK(transport_.adopt(peer, lane->address.segment, std::move(memory)));
  }
  addresses_[lane->spec] = lane->address;
  return {};
}

std::optional<ReceivedFrame> LaneConnections::take_passed(Rank peer, FrameKind kind) {
  const auto found = passages_.find({peer, kind});
  if (found == passages_.end() || found->second.empty()) return std::nullopt;
  ReceivedFrame passed = std::move(found->second.front());
  found->second.pop_front();
  return passed;
}

// Each end creates its own half, so neither waits for the other. Between hosts, the lanes of a pair share nothing.
Status LaneConnections::attach_remote(const LaneSpec& spec) {
  const Rank peer = other(spec);
  const auto open = [&](const LaneSpec& lane, LaneState& writing, LaneState& reading) -> Status {
    const bool writes = lane.writer == self_;
    LaneState& end = writes ? writing : reading;
    end.view =
        TUTTI_TRY(mesh_.connection(peer).open(mesh_.context(peer), lane, writes ? LaneEnd::writer : LaneEnd::reader));
    return {};
  };
  auto ends = std::make_unique<Ends>();
  TUTTI_CHECK_OK(open(spec, ends->writing, ends->reading));
  if (spec.form != LaneForm::one_way) {
    LaneSpec partner = spec;
    std::swap(partner.writer, partner.reader);
    std::swap(partner.tag, partner.partner_tag);
    TUTTI_CHECK_OK(open(partner, ends->partner_writing, ends->partner_reading));
  }
  ends_[spec] = std::move(ends);
  return {};
}

Status LaneConnections::attach(const LaneSpec& spec, Rank owner, const LaneAddress& address) {
  const LanePair pair = TUTTI_TRY(transport_.view(spec, owner, address));
  auto ends = std::make_unique<Ends>();
  ends->writing.view = ends->reading.view = pair.forward;
  ends->partner_writing.view = ends->partner_reading.view = pair.partner;
  if (other(spec) != self_) {
    for (LaneState* end : {&ends->writing, &ends->reading, &ends->partner_writing, &ends->partner_reading})
      end->peer_asleep = board_.sleep_word(other(spec));
  }
  ends_[spec] = std::move(ends);
  return {};
}

LaneState* LaneConnections::end(const LaneSpec& spec, Rank writer, std::uint16_t tag, LaneEnd which) {
  const auto found = ends_.find(spec);
  if (found == ends_.end()) return nullptr;
  Ends& ends = *found->second;
  const bool forward = writer == spec.writer && tag == spec.tag;
  if (which == LaneEnd::writer) return forward ? &ends.writing : &ends.partner_writing;
  return forward ? &ends.reading : &ends.partner_reading;
}

}  // namespace tutti
