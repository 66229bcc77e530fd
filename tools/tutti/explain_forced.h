// Effects of environment variables on the calls that `tutti explain` predicts.
#pragma once

#include <string>

#include "src/tuner/choose.h"

namespace tutti::tool {

// Empty: not forced.
struct ForcedNames {
  std::string algorithm, protocol;
};

// Fills in names that options left empty from TUTTI_ALGORITHM and TUTTI_PROTOCOL, or from NCCL's variables, if a
// communicator would honor them for such calls. Appends a sentence per variable to `words`. Fails like the creation of
// a communicator.
Status apply_environment(const Query& query, ForcedNames& names, std::string& words);

// Applies TUTTI_TRANSPORT to ranks on `hosts` hosts. With 0 hosts a topology determines the links, and the variable has
// no effect. Any transport but shm also connects ranks of one host, so it clears the groups of the problem.
Status apply_transport(Rank hosts, Query& query, std::string& words);

// Applies TUTTI_COMPRESS and TUTTI_MAX_RELATIVE_ERROR.
Status apply_compression(Query& query, std::string& words);

}  // namespace tutti::tool
