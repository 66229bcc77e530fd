// Autotuning results, from a file of TUTTI_TUNE_FILE, for the calls that `tutti explain` predicts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/tuner/candidates.h"
#include "src/tuner/tune_cache.h"
#include "tools/tutti/request.h"

namespace tutti::tool {

// The machine whose results are requested.
struct RequestedMachine {
  std::string file;   // Empty: no results.
  std::string named;  // Part of its name; empty: any machine.
  Rank cores = 0;     // Cores that the ranks share; 0: any number.
  std::string links;  // Links between GPUs, as in names of machines; empty: any links.
};

// Results of such calls and their machine. Has no candidates if the file has no such machine.
struct Measured {
  std::string machine;
  TunedClass tuned;
  std::optional<Choice> kept;       // Choice of such calls with autotuning; empty: the saved result has no effect.
  std::vector<std::string> others;  // Further machines with results of such calls.
  std::string named_file;           // File that the user named with --tune-file; empty: none.

  // Measured time; 0: not measured. Compressed calls are never measured.
  double us(const Choice& choice) const;
};

// Reads the results of the requested machine; of several, the one that was added last. Ignores names of machines that
// communicators no longer use. Fails if the file cannot be read.
Result<Measured> read_measured(const RequestedMachine& requested, const Query& query);

}  // namespace tutti::tool
