// The event loop: obeys the steps of all simulated ranks as executors do, and keeps account of the time.
//
// A rank's channel does one step after the other, in the order of the loop. A step begins when its channel is free, its
// messages and signals are there, and the lanes it sends on have a slot; it takes costs.step_us and its bytes over what
// the channel carries, once for each message it receives or sends, whichever are more. A message enters the links of
// its sender when its step begins, those of its receiver when its head is there; each link carries one message after
// the other. It can be taken a hop after its last byte, or that of the step that sends it. A slot comes back a hop (of
// lines) after the step that took the message. Memory of peers is written as a message is sent; what is read comes over
// the links before the step is done; a signal follows what was written before it.
//
// What switches add, or hand to all, goes over each link once (Program::multicast). A channel takes it in rounds, of
// a chunk of each rank that folds: it copies in what its rank gives and out what it gets, and needs multicast_us for
// each chunk besides. Rounds are copied while others are on the links, but for the first copies in and the last ones
// out.
//
// Channels of a rank do the same at the same time, so they are counted as one that carries as much as all.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/protocol.h"
#include "src/plan/loop.h"
#include "tools/simulator/costs.h"
#include "tools/simulator/program.h"

namespace tutti::simulator {

// Where the time went along a chain of events, of which each waited for the one before.
struct Chain {
  float launch = 0;                       // Until the first step could begin.
  float channel = 0;                      // Steps at work.
  float hops = 0;                         // Latencies.
  float slots = 0;                        // Waiting for slots.
  float queues = 0;                       // Waiting for links that carried other messages.
  std::array<float, kLinkKinds> links{};  // Being carried, by the narrowest link on the way.

  double sum() const {
    double all = static_cast<double>(launch) + channel + hops + slots + queues;
    for (const float each : links) all += each;
    return all;
  }
};

struct TraceEvent {
  bool link = false;          // Of a link, else of a rank's channel.
  std::uint32_t subject = 0;  // The rank (of several orders: as Program has them), or the link.
  std::uint32_t chunk = 0;
  double begin_us = 0, end_us = 0;
  double bytes = 0;
};

struct EngineRequest {
  Costs costs;
  Protocol protocol = Protocol::simple;
  LaunchMode launch = LaunchMode::eager;
  std::uint32_t channels = 1;
  Loop loop;                 // chunks: how many there are.
  std::uint32_t chunks = 1;  // How many are simulated.
  double unit_bytes = 0;     // Of a chunk, for all channels together.
  std::uint32_t parts = 1;   // In which steps are done, and messages go, where there are lanes alone.
  double slice_bytes = 0;    // Of a step in peers' memory, for all channels together. 0: it is done in one.
  // Of messages that are narrower than what they carry: their bytes for one of it, and what a rank's channels take
  // together to encode and to decode a byte of it. A step encodes once, and decodes each message that it takes; what it
  // takes and does not reduce goes on as it came.
  double compressed_part = 1, encode_us = 0, decode_us = 0;
  double jitter = 0;  // Steps and hops take longer by an exponentially distributed part of this mean.
  std::uint64_t seed = 1;
  std::vector<TraceEvent>* trace = nullptr;
  std::size_t max_traced = 500'000;
};

struct LinkUse {
  double busy_us = 0;
  double bytes = 0;  // On the wire.
};

struct EngineResult {
  double time_us = 0;
  std::vector<double> chunk_us;  // When each chunk was done on all ranks.
  Chain chain;                   // Of the rank that was last.
  Rank last = 0;
  std::uint64_t events = 0;    // Parts or slices of steps done, and messages that reached their receiver's links.
  std::vector<LinkUse> links;  // [resource]
  double data_bytes = 0;       // Sent, without what protocols add.
};

// How many events a run will have, at most: fewer where messages have no links of their receiver alone.
std::uint64_t events_of(const Program& program, const EngineRequest& request);

// Fails with `internal` where ranks wait for each other for ever; says which, for what.
Result<EngineResult> run_engine(const Program& program, const Network& network, const EngineRequest& request);

}  // namespace tutti::simulator
