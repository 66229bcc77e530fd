// Candidates for a call: algorithm, protocol and compression format, ordered by predicted time. The list is the same on
// every rank, because it depends only on state that all ranks share.
#pragma once

#include <string>
#include <vector>

#include "src/tuner/choose.h"
#include "src/tuner/cost.h"

namespace tutti {

inline constexpr double kWorthRounding = 1.1;  // Minimum speedup that justifies a loss of precision.

struct Candidate {
  Choice choice;
  double predicted_us = 0;
  Prediction parts;  // Components of predicted_us.
};

// Feasible candidates, fastest first; ties keep catalogue order. With a bound on the error, formats are part of the
// candidates. A candidate with compression precedes one without only if it is at least 10 % faster. On devices, the
// choice of choose_for_gpus() comes first; of the exclusion rules, only that of protocols between hosts applies to it.
// A forced algorithm or protocol restricts the list, which may then be empty. Fails like choose().
Result<std::vector<Candidate>> candidates(const Query& query);

// Predicts the time of a choice, with its format, chunk size and channels.
Prediction prediction_of(const Query& query, const Choice& choice);

// Returns the reason why the algorithm with this protocol is not a candidate, as the end of a sentence; "" if it is
// one. With a bound on the error, this refers to the format in query.compression.
std::string ruled_out(const Query& query, const Algorithm& algorithm, Protocol protocol);

// Formats to consider: query.compression or, with a bound on the error, all formats that may satisfy it.
std::vector<CompressionFormat> formats_of(const Query& query);

// True if a block is cut into sufficiently few units. With hosts of many different sizes there can be so many units
// that a chunk contains only a few bytes of each, or none.
bool suits_hosts(std::uint64_t units, const Problem& problem);

}  // namespace tutti
