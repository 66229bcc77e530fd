// What `tutti explain` prints.
#pragma once

#include <string>
#include <vector>

#include "src/tuner/candidates.h"
#include "tools/tutti/explain_kept.h"

namespace tutti {

// `environment`: what that forces, in words.
void print_text(const Query& query, const std::vector<Candidate>& found, const Measured& measured,
                const std::string& environment);
void print_json(const Query& query, const std::vector<Candidate>& found, const Measured& measured,
                const std::string& environment);

}  // namespace tutti
