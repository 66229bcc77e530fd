#include "tests/transports/ends.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "src/base/config.h"
#include "tests/base/share_cpu.h"
#include "tests/transports/loopback.h"
#include "tests/transports/memory_carrier.h"
#include "transports/net_plugin.h"
#include "transports/shm/shm_transport.h"
#include "transports/ucx.h"
#include "transports/verbs.h"

namespace tutti::test {
namespace {

Result<std::unique_ptr<CarrierSource>> no_carrier() { return std::unique_ptr<CarrierSource>(); }
Result<std::unique_ptr<CarrierSource>> memory_carrier() {
  return std::unique_ptr<CarrierSource>(std::make_unique<MemorySource>());
}

struct SharedMemory : Ends {
  LaneView open(int end, const LaneSpec& spec, LaneEnd, std::uint32_t context) override {
    const auto [made, is_new] = lanes.try_emplace({context, spec});
    if (is_new) made->second = std::move(sides[spec.reader].create(spec)).value();
    const LaneAddress& address = made->second;
    const Segment& segment = sides[spec.reader].segment(address.segment);
    if (end != static_cast<int>(spec.reader) && passed.insert({spec.reader, address.segment}).second) {
      Segment memory = std::move(Segment::adopt(std::move(segment.duplicate()).value(), segment.size())).value();
      EXPECT_TRUE(sides[end].adopt(spec.reader, address.segment, std::move(memory)).ok());
    }
    return std::move(sides[end].view(spec, spec.reader, address)).value().forward;
  }
  void advance(int) override {}
  void wait(int, int) override { share_cpu(); }
  bool drained(int) override { return true; }

  ShmTransport sides[2] = {ShmTransport(0), ShmTransport(1)};
  std::map<std::pair<std::uint32_t, LaneSpec>, LaneAddress> lanes;
  std::set<std::pair<std::uint32_t, std::uint32_t>> passed;
};

}  // namespace

const std::vector<Tested>& connections_tested() {
  static const std::vector<Tested> all = {
      {"tcp", no_carrier},
      {"sealed_tcp", no_carrier, true},
      {"memory", memory_carrier},
      {"ucx", open_ucx},
      {"net_plugin_v8", [] { return open_net_plugin({.plugins = NET_STAND_IN_V8}); }},
      {"net_plugin_v12", [] { return open_net_plugin({.plugins = NET_STAND_IN_V12}); }},
      {"verbs", [] { return open_verbs(VerbsOptions::from(config())); }},
  };
  return all;
}

std::unique_ptr<Ends> shared_memory() { return std::make_unique<SharedMemory>(); }

Connections::Connections(std::unique_ptr<CarrierSource> from, const Seal& seal, bool required,
                         const std::string& instead)
    : source(std::move(from)) {
  auto sockets = loopback_pair();
  const auto make = [&](int end, Socket socket, const char* route) {
    std::unique_ptr<Carrier> carrier;
    if (source) carrier = std::move(source->make()).value();
    CarrierOptions carrier_options = {std::move(carrier), required && source != nullptr, instead};
    ends[end] = std::make_unique<TcpConnection>(std::move(socket), end == 1, route, std::move(carrier_options), seal);
  };
  make(0, std::move(sockets.first), "here");
  make(1, std::move(sockets.second), "there");
}

LaneView Connections::open(int end, const LaneSpec& spec, LaneEnd which, std::uint32_t context) {
  return std::move(ends[end]->open(context, spec, which)).value();
}

void Connections::advance(int end) {
  if (ends[end]) ends[end]->advance();
}

std::string Connections::why() {
  std::string text;
  for (const auto& end : ends) {
    if (end && end->lost()) text += ": " + end->reason();
  }
  return text;
}

std::vector<std::byte> message_of(std::uint64_t number, std::size_t bytes) {
  std::vector<std::byte> message(bytes);
  std::uint64_t word = number * 0x9e3779b97f4a7c15 + 1;
  for (std::size_t at = 0; at < bytes; at += sizeof word) {
    word = word * 6364136223846793005 + 1442695040888963407;
    const std::uint64_t mixed = word ^ (word >> 29);
    std::memcpy(message.data() + at, &mixed, std::min(sizeof mixed, bytes - at));
  }
  return message;
}

void post(LaneState& lane, const std::vector<std::byte>& message) {
  if (!message.empty()) std::memcpy(slot_of(lane.view, lane.next), message.data(), message.size());
  simple_post(lane, kSignature, message.size());
}

bool next_is(LaneState& lane, const std::vector<std::byte>& message) {
  const bool right =
      simple_matches(lane, kSignature) &&
      load_relaxed(&lane.view.words->lengths[lane.next % kMaxLengths]) == message.size() &&
      (message.empty() || std::memcmp(slot_of(lane.view, lane.next), message.data(), message.size()) == 0);
  take(lane);
  return right;
}

}  // namespace tutti::test
