// Event loop: runs the steps of all simulated ranks as executors do, and accounts for the time.
//
// A rank's channel runs one step after another, in the order of the loop. A step begins when its channel is free,
// its messages and signals have arrived, and the lanes it sends on have a slot. It takes costs.step_us, and its
// bytes over the channel's rate, once for each message received or sent, whichever are more. A message enters the
// sender's links when its step begins, and the receiver's links when its head arrives; each link carries one
// message after another. It can be received one hop after its last byte, or after that of the step that sends it. A
// slot returns one LL hop after the step that took the message. Writes to peers' memory are timed like messages.
// Reads cross the links before the step ends. A signal follows earlier writes.
// Multicast data, which switches add or distribute, crosses each link once (Program::multicast). A channel
// processes it in rounds of one chunk per contributing rank: it copies in its contribution, copies out its result,
// and needs multicast_us per chunk. Copies overlap with transfers, except the first copies in and the last ones
// out.
// Channels of a rank run alike at the same time, so they are simulated as one that carries as much as all.
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
  bool link = false;          // Event of a link, else of a rank's channel.
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
  double unit_bytes = 0;     // Bytes of a unit of a chunk, for all channels together.
  std::uint32_t parts = 1;   // In which steps are done, and messages go, where there are lanes alone.
  double slice_bytes = 0;    // Slice size of steps in peers' memory, for all channels together. 0: one slice.
  // Compressed messages: their size relative to the data, and the time in which all channels of a rank encode and
  // decode one byte of data. A step encodes once, and decodes each message that it receives. Data that is forwarded
  // without a reduction stays encoded.
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
  Chain chain;                   // Chain of the last rank.
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
