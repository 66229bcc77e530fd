// What `tutti explain` prints.
#pragma once

#include <string>
#include <vector>

#include "src/tuner/candidates.h"
#include "src/tuner/tune_cache.h"

namespace tutti {

// What trials of such calls came to, and where; no candidates where the file has none of such hosts.
struct Measured {
  std::string machine;
  TunedClass tuned;

  // 0: not measured.
  double us(const Choice& choice) const {
    for (const TunedCandidate& one : tuned.candidates)
      if (one.algorithm == choice.algorithm && one.protocol == choice.protocol) return one.measured_us;
    return 0;
  }
};

// `environment`: what that forces, in words.
void print_text(const Query& query, const std::vector<Candidate>& found, const Measured& measured,
                const std::string& environment);
void print_json(const Query& query, const std::vector<Candidate>& found, const Measured& measured,
                const std::string& environment);

}  // namespace tutti
