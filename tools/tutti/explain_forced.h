// What the environment forces upon the calls that `tutti explain` is asked about.
#pragma once

#include <string>

#include "src/tuner/choose.h"

namespace tutti::tool {

// Empty: the choice is open.
struct ForcedNames {
  std::string algorithm, protocol;
};

// Names that were given are kept; in place of others come those of TUTTI_ALGORITHM and TUTTI_PROTOCOL, or of NCCL's
// variables, where a communicator would heed them for such calls. `words`: a sentence for each of these variables,
// behind those that are there. Fails as creating a communicator does.
Status apply_environment(const Query& query, ForcedNames& names, std::string& words);

// TUTTI_TRANSPORT, for ranks of so many hosts; 0: of a topology, which says by itself what leads from rank to rank.
// Ranks that ask for another than shm are apart, whatever hosts they are on: groups are forgotten then.
Status apply_transport(Rank hosts, Query& query, std::string& words);

// Of formats and bounds: TUTTI_COMPRESS and TUTTI_MAX_RELATIVE_ERROR, the latter on host memory.
Status apply_compression(Query& query, std::string& words);

}  // namespace tutti::tool
