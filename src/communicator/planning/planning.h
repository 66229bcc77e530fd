// From a call to verified plans that are cut into chunks. Common to communicators on host memory and on devices.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "src/communicator/call/call.h"
#include "src/communicator/call/hosts.h"
#include "src/communicator/call/run_statistics.h"
#include "src/communicator/control/board.h"
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
// Returns the offset in bytes from the input to the output of an in-place call. If the rank has only one of the two
// buffers, returns a value that is never the distance of two addresses.
std::int64_t in_place_distance(const Call& call, Rank ranks, Rank rank);
// Returns the call as peers see it, without its number and buffers.
CallRecord record_of(const Call& call, const CommunicatorOptions& options);

// Returns the signature in the messages of this call. It distinguishes them from messages left over from another call.
inline Signature signature_of(const CallRecord& record) {
  return {record.signature + static_cast<std::uint32_t>(record.sequence) * 0x9e3779b1U};
}

// Returns the machine model for ranks on host memory: shared cores, and links between hosts.
Machine machine_of(const Hosts& hosts);
// Returns the machine model for ranks on GPUs.
Machine machine_of_gpus(const Hosts& hosts);

// Returns the algorithm that the options force. Returns "" if the collective has no algorithm of this name, or if
// NCCL_ALGO names one that does not support the problem, or switches (NVLS, NVLSTree) that do not serve this call. For
// NVLS it is kSwitchStaged; see switch_algorithm(). `by_switches`: they serve the algorithm of the options.
std::string_view forced_algorithm(const CommunicatorOptions& options, const Problem& problem, bool by_switches);

// Returns the tuner's query for a problem, with all algorithms of the collective.
Query query_of(const Problem& problem, std::uint64_t block_bytes);

// Returns the predicted time of a choice on its channels, in microseconds. Fails if the choice is not a candidate.
Result<double> predicted_us(const Query& query, const Choice& choice);
// Returns a choice with the algorithm and protocol of `other`, but with chunks for this size. If there is no such
// candidate, returns the result of choose().
Result<Choice> choose_like(const Choice& other, const Query& query);

struct ProvedPlans {
  std::vector<Plan> plans;  // Plans of all ranks, fused.
  bool overlaps = false;    // Chunks may overlap.
  bool balanced = false;    // Verified: a message may take several slots.
};

// Returns the loop for plans whose number of chunks is not known yet. It has enough chunks to represent any larger
// number.
Loop loop_of(bool overlaps, std::uint32_t slots);

// Emits, fuses and verifies the plans of an algorithm for a loop. Chunks do not overlap if the loop lacks slots for
// that. With few ranks, or with TUTTI_VERIFY, each plan is verified again for its logical ranks.
Result<ProvedPlans> prove_plans(const Algorithm& algorithm, const Problem& problem, const Loop& loop,
                                const RankMapping& rank_mapping = {}, Messages messages = Messages::exact);

// Requested compression of a call's messages. It is the format of the options if that is smaller than the elements, or
// an error bound within which the tuner chooses. Raw if the call has no messages.
struct CompressionRequest {
  CompressionFormat compression = CompressionFormat::none;
  double max_relative_error = 0;

  bool raw() const { return compression == CompressionFormat::none && max_relative_error == 0; }
};
CompressionRequest compression_request(const Call& call, const CommunicatorOptions& options, Rank ranks);

// Logs at level trace how a new kind of call runs. `mapped` is the algorithm that replaces it if the buffers of all
// ranks are mapped; null: none.
void trace_choice(Rank rank, const CallRecord& record, const Choice& choice, const Algorithm* mapped);

// Limits for the messages of a plan.
struct SlotLimits {
  const char* algorithm = "";       // Used in error messages.
  std::uint32_t units = 1;          // Units per block.
  std::uint32_t longest_units = 1;  // Units of the longest message of any rank.
  std::uint32_t slot_bytes = 0;     // Data bytes that a slot holds; 0: no lanes.
  std::uint32_t granule_bytes = 1;  // Parts of units begin at multiples of this size.
  bool overlaps = false;
  bool balanced = false;
};

// For plans with lanes and a staging ring, whose limits are those of a position: shortens chunks so that each message
// fits a slot, too.
void fit_slots(std::span<const Plan> plans, std::uint32_t slot_bytes, SlotLimits& limits);

// Cuts a call into chunks for launch.channels channels. Fails if its messages do not fit the slots.
Status cut_call(const Call& call, const Choice& choice, const SlotLimits& limits, Rank ranks, Launch& launch,
                CompressionFormat compression = CompressionFormat::none);

// Returns the bytes that a rank sends in a launch after cut_call(), over all channels.
Carried bytes_sent(const Program& program, const Launch& launch);
// Like bytes_sent() above, for channels that use several programs in turn, each with an equal share of the call.
Carried bytes_sent(const std::vector<const Program*>& programs, const Launch& launch);

}  // namespace tutti
