#include "src/communicator/membership/disagreement.h"

#include <string>

#include "src/base/config.h"
#include "src/communicator/call/forced.h"
#include "src/tuner/choose.h"

namespace tutti {
namespace {

std::string or_none(std::string_view name) { return name.empty() ? "none" : std::string(name); }

std::string protocol_name(std::uint8_t number) {
  return or_none(number == 0 || number > std::size(kProtocols) ? std::string_view() : kProtocols[number - 1]);
}

std::string compression_name(std::uint8_t number) {
  if (number == Requested::kBound) return "within a bound on the error";
  const char* known = name(static_cast<CompressionFormat>(number));
  return known == nullptr ? "raw" : known;
}

std::string autotuning_of(const CallRecord& record) {
  const auto tune = static_cast<Tune>(record.tune);
  return std::string(tune == Tune::off     ? "0"
                     : tune == Tune::exact ? "exact"
                                           : "1") +
         (record.has_tune_file != 0 ? " with a file" : "");
}

// Returns the options that differ, such as "rank 0 requests algorithm ring and rank 1 requests none
// (options.tuning->algorithm or TUTTI_ALGORITHM)".
std::string differing_requests(const RanksCall& ours, const RanksCall& theirs) {
  std::string text;
  const auto add_difference = [&](const char* what, const std::string& mine, const std::string& other,
                                  const char* where) {
    if (mine == other) return;
    text += (text.empty() ? "rank " : "; rank ") + std::to_string(ours.rank) + " requests " + what + mine +
            " and rank " + std::to_string(theirs.rank) + " requests " + other + " (" + where + ")";
  };
  const Requested& mine = ours.record.requested;
  const Requested& other = theirs.record.requested;
  add_difference("algorithm ", or_none(algorithm_name(mine.algorithm)), or_none(algorithm_name(other.algorithm)),
                 "options.tuning->algorithm or TUTTI_ALGORITHM");
  add_difference("protocol ", protocol_name(mine.protocol), protocol_name(other.protocol),
                 "options.tuning->protocol or TUTTI_PROTOCOL");
  add_difference("compression format ", compression_name(mine.compression), compression_name(other.compression),
                 kCompressionIsSetBy);
  add_difference("channels ", std::to_string(mine.channels), std::to_string(other.channels),
                 "options.tuning->channels or TUTTI_CHANNELS; 0 is any number");
  add_difference("autotuning ", autotuning_of(ours.record), autotuning_of(theirs.record),
                 "TUTTI_TUNE, which TUTTI_DETERMINISTIC sets to 0, and TUTTI_TUNE_FILE");
  return text;
}

std::string input_place(const RanksCall& call) {
  return "rank " + std::to_string(call.rank) + " passes byte " + std::to_string(call.record.input.offset) +
         " of window " + std::to_string(call.record.input.region);
}

// Describes the difference between ranks that make the same call.
std::string difference(const RanksCall& ours, const RanksCall& theirs) {
  const auto& own = ours.record.input;
  const auto& other = theirs.record.input;
  const bool elsewhere = own.region != other.region || own.offset != other.offset;
  if (ours.record.by_copy_engines != 0 && theirs.record.by_copy_engines != 0 && elsewhere)
    return input_place(ours) + ", and " + input_place(theirs) +
           ": for copy engines (algorithm copy_engines, or CTAPolicy of NCCL), all ranks must pass buffers at the same "
           "place of the same window, or all in place; or do not request them";
  const std::string requested = differing_requests(ours, theirs);
  if (!requested.empty()) return requested;
  const std::string both = "ranks " + std::to_string(ours.rank) + " and " + std::to_string(theirs.rank);
  if (ours.record.advised != 0 || theirs.record.advised != 0)
    return "the tuner plugins of " + both +
           " choose differently: TUTTI_TUNER_PLUGIN or NCCL_TUNER_PLUGIN and the files that the plugin reads must "
           "match on all ranks";
  if (ours.record.by_copy_engines != theirs.record.by_copy_engines) {
    const Rank rank = ours.record.by_copy_engines != 0 ? theirs.rank : ours.rank;
    return "rank " + std::to_string(rank) +
           " does not pass buffers in windows that copy engines can use: all ranks must, or do not request them "
           "(algorithm copy_engines, or CTAPolicy of NCCL)";
  }
  return both +
         " have different settings; these must match on all ranks: the bound on errors (options.max_relative_error, "
         "TUTTI_MAX_RELATIVE_ERROR or TUTTI_NCCL_COMPRESS_MAX_RELATIVE_ERROR), the bounds on channels "
         "(options.tuning->min_channels and max_channels, or minCTAs, maxCTAs and CTAPolicy), the tuner plugin "
         "(TUTTI_TUNER_PLUGIN or NCCL_TUNER_PLUGIN), TUTTI_DETERMINISTIC, and whether NCCL_ALGO and NCCL_PROTO or "
         "Tutti's own settings request the algorithm and protocol";
}

// Returns the start of a message: "ranks disagree on collective 2 of gradients".
std::string start_of(const std::string& communicator, const CallRecord& record) {
  return "ranks disagree on collective " + std::to_string(record.sequence) +
         (communicator.empty() ? "" : " of " + communicator);
}

// Returns the start of a message: "ranks disagree on collective 2 of gradients: rank 0 called all_reduce(10 float32,
// sum), rank ".
std::string first_call(const std::string& communicator, const RanksCall& first) {
  return start_of(communicator, first.record) + ": rank " + std::to_string(first.rank) + " called " +
         describe(first.record) + ", rank ";
}

}  // namespace

Status disagreement(const std::string& communicator, const RanksCall& ours, const RanksCall& theirs) {
  const std::string call = describe(theirs.record);
  if (call == describe(ours.record))
    return invalid_usage(start_of(communicator, ours.record) + ", " + call + ": " + difference(ours, theirs));
  return invalid_usage(first_call(communicator, ours) + std::to_string(theirs.rank) + " called " + call);
}

Status deadlock(const std::string& communicator, const RanksCall& collective, const RanksMessage& message,
                const std::string& order) {
  return invalid_usage(first_call(communicator, collective) + std::to_string(message.rank) + " called " +
                       message.description + ", and they wait for each other: " + order +
                       "; make the same calls in the same order on all ranks");
}

}  // namespace tutti
