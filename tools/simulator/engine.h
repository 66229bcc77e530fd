// Event loop: runs the steps of all simulated ranks in the order of the executors, and accounts for the time.
//
// Steps: a rank's channel runs one step after another, in the order of the loop. A step begins when its channel is
// free, its messages and signals have arrived, and the lanes on which it sends have a slot. It takes costs.step_us plus
// costs.message_us per message plus the time of its bytes at the channel's rate. Bytes count once per received message
// or once per sent message, whichever is more; received bytes that are reduced take additional time. The channels of a
// rank run equally at the same time, so they are simulated as one channel with their total rate.
//
// Messages: a message enters the sender's links when its step begins, and the receiver's links when its head arrives. A
// link carries one message at a time. A message arrives one hop after its last byte passed the links and its step
// ended. A slot is free one LL hop after the end of the step that received its message.
//
// Peers' memory: writes are timed like messages. Reads cross the links before the step ends. A signal arrives after the
// writes before it.
//
// Multicast: data that switches reduce or distribute crosses each link once (Program::multicast). A channel processes
// it in rounds of one chunk per contributing rank. In each round it copies in its contribution, copies out its result,
// and needs multicast_us per chunk. Copies overlap with transfers, except the first copy in and the last copy out.
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

// Time in us by cause, along a chain of events in which each event waited for the previous one.
struct Chain {
  float launch = 0;                       // Time before the first step could begin.
  float channel = 0;                      // Steps in execution.
  float hops = 0;                         // Latencies.
  float slots = 0;                        // Waits for slots.
  float queues = 0;                       // Waits for links that carried other messages.
  std::array<float, kLinkKinds> links{};  // [kind of the slowest link]: transfers.

  double sum() const {
    double all = static_cast<double>(launch) + channel + hops + slots + queues;
    for (const float each : links) all += each;
    return all;
  }
};

struct TraceEvent {
  bool link = false;          // Event of a link, else of a rank's channel.
  std::uint32_t subject = 0;  // Link, or rank; with several orders, numbered like in Program.
  std::uint32_t chunk = 0;
  double begin_us = 0, end_us = 0;
  double bytes = 0;
};

struct EngineRequest {
  Costs costs;
  Protocol protocol = Protocol::simple;
  LaunchMode launch = LaunchMode::eager;
  std::uint32_t channels = 1;
  Loop loop;                 // loop.chunks: chunks of the call.
  std::uint32_t chunks = 1;  // Number of chunks to simulate.
  double unit_bytes = 0;     // Bytes of a unit of a chunk, for all channels together.
  std::uint32_t parts = 1;   // Parts of each step and message of a program that uses only lanes.
  double slice_bytes = 0;    // Slice size of steps in peers' memory, for all channels together. 0: one slice.
  // Compressed messages: size relative to the data, and time for all channels of a rank to encode and decode one byte
  // of data. A step encodes once, and decodes each message that it receives. Data that is forwarded without a reduction
  // stays encoded.
  double compressed_part = 1, encode_us = 0, decode_us = 0;
  double jitter = 0;  // Mean of the exponentially distributed fraction by which steps and hops take longer.
  std::uint64_t seed = 1;
  std::vector<TraceEvent>* trace = nullptr;
  std::size_t max_traced = 500'000;
};

struct LinkUse {
  double busy_us = 0;
  double bytes = 0;  // Bytes on the link, with overhead of the protocol.
};

struct EngineResult {
  double time_us = 0;
  std::vector<double> chunk_us;  // Time at which each chunk was done on all ranks.
  Chain chain;                   // Chain of the last rank to finish.
  Rank last = 0;
  std::uint64_t events = 0;    // Executed parts or slices of steps, plus messages that reached their receiver's links.
  std::vector<LinkUse> links;  // [resource]
  double data_bytes = 0;       // Bytes sent, without overhead of the protocol.
};

// Returns the maximum number of events of a run. Messages without links on the receiver's side have fewer events.
std::uint64_t events_of(const Program& program, const EngineRequest& request);

// Simulates a call. Fails with `internal` if ranks deadlock; the message names ranks and what they wait for.
Result<EngineResult> run_engine(const Program& program, const Network& network, const EngineRequest& request);

}  // namespace tutti::simulator
