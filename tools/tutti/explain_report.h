// What `tutti explain` prints.
#pragma once

#include <string>
#include <vector>

#include "src/tuner/candidates.h"
#include "tools/tutti/explain_kept.h"

namespace tutti::tool {

// What predictions go by, beside the query.
struct ExplainedTerms {
  std::string environment;    // What it forces, and what nobody would guess, in words.
  Rank cores = 0;             // That all ranks share; 0: each has its own, or they are on devices.
  bool of_this_host = false;  // Its cores, as nobody has named others.
};

void print_text(const Query& query, const std::vector<Candidate>& found, const Measured& measured,
                const ExplainedTerms& terms);
void print_json(const Query& query, const std::vector<Candidate>& found, const Measured& measured,
                const ExplainedTerms& terms);

}  // namespace tutti::tool
