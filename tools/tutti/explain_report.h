// Output of `tutti explain`.
#pragma once

#include <string>
#include <vector>

#include "src/tuner/candidates.h"
#include "tools/tutti/explain_kept.h"

namespace tutti::tool {

// Terms of predictions beside the query.
struct ExplainedTerms {
  std::string environment;         // Sentences about variables that have an effect, and about surprising conditions.
  Rank cores = 0;                  // Cores that all ranks share; 0: one per rank, or buffers on GPUs.
  bool of_this_host = false;       // The cores are those of this machine.
  bool simulated = false;          // Predicted times are simulated.
  std::vector<std::string> notes;  // Sentences about predicted times.
};

// Returns a sentence if the library rejects calls with these settings; else "".
std::string rejection(const Query& query);

void print_text(const Query& query, const std::vector<Candidate>& found, const Measured& measured,
                const ExplainedTerms& terms);
void print_json(const Query& query, const std::vector<Candidate>& found, const Measured& measured,
                const ExplainedTerms& terms);

}  // namespace tutti::tool
