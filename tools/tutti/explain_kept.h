// What a file of TUTTI_TUNE_FILE says of the calls that `tutti explain` is asked about.
#pragma once

#include <optional>
#include <string>

#include "src/tuner/candidates.h"
#include "src/tuner/tune_cache.h"
#include "tools/tutti/request.h"

namespace tutti {

// What trials of such calls came to, and where; no candidates where the file has none of such hosts.
struct Measured {
  std::string machine;
  TunedClass tuned;
  std::optional<Choice> kept;  // What such calls run as where trials are on; none: what the file keeps has no effect.
  std::string named_file;      // By somebody who wants to see what it has; empty: nobody does.

  // 0: not measured, as whatever rounds: trials are of messages that go as they are.
  double us(const Choice& choice) const;
};

// Of a machine's name the hosts and the transport are looked at: its processors are not asked about. Of several
// machines the first is taken. `hosts`: those of the ranks; empty: one has all. Fails as reading the file does.
Result<Measured> read_measured(const std::string& file, const Query& query, const Groups& hosts);

}  // namespace tutti
