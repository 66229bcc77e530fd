// What a file of TUTTI_TUNE_FILE says of the calls that `tutti explain` is asked about.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/tuner/candidates.h"
#include "src/tuner/tune_cache.h"
#include "tools/tutti/request.h"

namespace tutti::tool {

// Whose figures are wanted.
struct AskedMachine {
  std::string file;   // Empty: none is.
  std::string named;  // What its name has in it; empty: whatever.
  Rank cores = 0;     // That they share; 0: whatever.
  std::string links;  // Of devices, as names of machines have them; empty: whatever.
};

// What trials of such calls came to, and where; no candidates where the file has none of such machines.
struct Measured {
  std::string machine;
  TunedClass tuned;
  std::optional<Choice> kept;  // What such calls run as where trials are on; none: what the file keeps has no effect.
  std::vector<std::string> others;  // Machines that it has such calls of as well.
  std::string named_file;           // By somebody who wants to see what it has; empty: nobody does.

  // 0: not measured, as whatever rounds: trials are of messages that go as they are.
  double us(const Choice& choice) const;
};

// Of machines with these ranks, on devices or on host memory as the query is, and what else is asked for: the one that
// was added to last. Names that communicators do not look for any more are left out. Fails as reading the file does.
Result<Measured> read_measured(const AskedMachine& asked, const Query& query);

}  // namespace tutti::tool
