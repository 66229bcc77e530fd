// All that could do a call, by how long it is predicted to take. The list is the same on every rank, since it is made
// from what all ranks share.
#pragma once

#include <string>
#include <vector>

#include "src/tuner/choose.h"
#include "src/tuner/cost.h"

namespace tutti {

inline constexpr double kWorthRounding = 1.1;  // Digits are not given up for less.

struct Candidate {
  Choice choice;
  double predicted_us = 0;
  Prediction parts;  // What that is made of.
};

// Those that are possible, the best first; of equals the first of the catalogue. Under a bound on the error, which
// formats are among, one that rounds comes before others only if it is a tenth better. On devices what
// choose_for_gpus() says is the first, even where others like it are ruled out. Where an algorithm or a protocol is
// forced, those that agree with it: maybe none. Fails as choose() does.
Result<std::vector<Candidate>> candidates(const Query& query);

// What a choice among them is predicted to take: in its format, cut and on as many channels as it says.
Prediction prediction_of(const Query& query, const Choice& choice);

// Why the algorithm with the protocol is not among them, as the end of a sentence; "" if it is. Under a bound: in the
// format that the query names.
std::string ruled_out(const Query& query, const Algorithm& algorithm, Protocol protocol);

// What messages may be in: the format of the query or, under a bound on the error, those that may keep to it.
std::vector<CompressionFormat> formats_of(const Query& query);

// Whether blocks in so many units are in few enough: hosts of many different sizes share blocks out in so many that a
// chunk has a few bytes of each, or none.
bool suits_hosts(std::uint64_t units, const Problem& problem);

}  // namespace tutti
