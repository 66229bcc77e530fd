// What to measure, as it is asked for on the command line.
#pragma once

#include <cstdint>
#include <vector>

#include "perf/rounding/data.h"
#include "src/compression/format.h"
#include "src/plan/algorithm.h"

namespace tutti::rounding {

struct Request {
  Collective collective = Collective::all_reduce;
  std::vector<Data> data;
  std::vector<DataType> types;
  std::vector<CompressionFormat> formats;
  std::vector<const Algorithm*> algorithms;
  std::vector<Rank> ranks;
  std::uint64_t elements = 65536;  // Of the largest buffer of a rank.
  std::uint64_t seed = 1;
};

// --name value, lists with commas. Of data, types and formats that are not named all are meant, of algorithms those
// after which all ranks have the same bits; of ranks, 8. Fails for a name that there is not.
Result<Request> parse_request(int count, char** arguments);

}  // namespace tutti::rounding
