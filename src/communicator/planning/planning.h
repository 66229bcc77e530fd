// From a call to plans that are proved and cut: what communicators do alike, wherever the memory of their ranks lies.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "src/communicator/call.h"
#include "src/communicator/compression_counter.h"
#include "src/communicator/control/board.h"
#include "src/communicator/hosts.h"
#include "src/compression/format.h"
#include "src/executor/run.h"
#include "src/plan/plan.h"
#include "src/plan/rank_mapping.h"
#include "src/plan/verify.h"
#include "src/tuner/candidates.h"

namespace tutti {

struct CommunicatorOptions;

std::uint32_t mix(std::uint64_t value);

Problem problem_of(const Call& call, Rank ranks);
// How far the output begins behind the input, in bytes, where a rank passes one buffer as both. A rank that has only
// one of them passes no such thing: no two addresses are this far apart.
std::int64_t in_place_distance(const Call& call, Rank ranks, Rank rank);
// The call as the peers see it, without its number and buffers.
CallRecord record_of(const Call& call, const CommunicatorOptions& options);

// Signature that this call's messages carry, so that a message left from another call is not mistaken for one of
// this call.
inline Signature signature_of(const CallRecord& record) {
  return {record.signature + static_cast<std::uint32_t>(record.sequence) * 0x9e3779b1U};
}
struct RanksCall {
  Rank rank;
  const CallRecord& record;
};
// That two ranks of a communicator of this name (or none) made different calls, in the words of the one. In
// disagreement.cc.
Status disagreement(const std::string& communicator, const RanksCall& ours, const RanksCall& theirs);
// The error for a send or recv that waits for a rank in a collective, which waits for it. `order`: which rank waits for
// which. In disagreement.cc.
struct RanksMessage {
  Rank rank;
  std::string description;  // "send(20 int32, to rank 0)"
};
Status deadlock(const std::string& communicator, const RanksCall& collective, const RanksMessage& message,
                const std::string& order);

// Where the ranks are, for those who ask why the problem has no groups.
struct Whereabouts {
  const RankMapping& rank_mapping;
  bool several_hosts;
};

// Machine model of ranks on host memory: shared cores, and links between hosts.
Machine machine_of(const Hosts& hosts);
// The same of ranks on GPUs.
Machine machine_of_gpus(const Hosts& hosts);

// The algorithm that options force; "" for a collective that has none of the name, or where it is NCCL's and does not
// do the problem.
std::string_view forced_algorithm(const CommunicatorOptions& options, const Problem& problem);

// Query for the tuner about a problem, with all candidates.
Query query_of(const Problem& problem, std::uint64_t block_bytes);

// Predicted time of a choice on its channels, in microseconds. Fails for a choice that is not among the candidates.
Result<double> predicted_us(const Query& query, const Choice& choice);
// Fails for what is no collective.
Status check_predictable(const Call& call);
// How a call goes as one of another size does: by the same algorithm and protocol, cut as suits it; where that cannot
// be, as choose() says.
Result<Choice> choose_like(const Choice& other, const Query& query);

// Algorithm of a choice. Fails if no algorithm of this name supports the problem.
Result<const Algorithm*> chosen_algorithm(const Choice& choice, const Problem& problem, const Whereabouts& ranks);

// Fails where messages are to carry numbers rounded, which the algorithm does not bear.
Status check_rounding(const Query& query, const Choice& choice);

struct ProvedPlans {
  std::vector<Plan> plans;  // Plans of all ranks, fused.
  bool overlaps = false;    // Pieces do overlap.
  bool balanced = false;    // Proved: a message may take several slots.
};

// Loop for plans whose number of chunks is not known yet: enough chunks to represent any larger number.
Loop loop_of(bool overlaps, std::uint32_t slots);

// `pipelined`: chunks may overlap, on lanes with so many slots. Where there are few ranks every plan is proved again,
// for its logical ranks.
Result<ProvedPlans> prove_plans(const Algorithm& algorithm, const Problem& problem, bool pipelined, std::uint32_t slots,
                                const RankMapping& rank_mapping = {}, Messages messages = Messages::exact);

// How messages are to carry the call's elements: in the format that options ask for, where there are any messages and
// that is narrower; or, where they say how large the error may be, in what the tuner takes.
struct CompressionRequest {
  CompressionFormat compression = CompressionFormat::none;
  double max_relative_error = 0;

  bool raw() const { return compression == CompressionFormat::none && max_relative_error == 0; }
};
CompressionRequest compression_request(const Call& call, const CommunicatorOptions& options, Rank ranks);

// Logs at level trace what a new kind of call runs as. `mapped`: algorithm that replaces it if the buffers of all ranks
// are mapped; null: none.
void trace_choice(Rank rank, const CallRecord& record, const Choice& choice, const Algorithm* mapped);

// Limits for the messages of a plan.
struct SlotLimits {
  const char* algorithm = "";       // In messages.
  std::uint32_t units = 1;          // Per block.
  std::uint32_t longest_units = 1;  // Units of the longest message of any rank.
  std::uint32_t slot_bytes = 0;     // Data that a slot holds; 0: no lanes.
  std::uint32_t granule_bytes = 1;  // Parts of units begin at multiples of it.
  bool overlaps = false;
  bool balanced = false;
};

// Cuts a call into chunks for launch.channels channels.
Status cut_call(const Call& call, const Choice& choice, const SlotLimits& limits, Rank ranks, Launch& launch,
                CompressionFormat compression = CompressionFormat::none);

// Bytes that a rank sends in a launch that cut_call() has cut, over all channels.
Carried carried_by(const Program& program, const Launch& launch);
// The same of programs that channels take in turns, each with an equal part of the call.
Carried carried_by(const std::vector<const Program*>& programs, const Launch& launch);

}  // namespace tutti
