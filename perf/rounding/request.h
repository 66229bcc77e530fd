// Command-line request of a measurement.
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
  std::uint64_t elements = 65536;  // Elements of the largest buffer of a rank.
  std::uint64_t seed = 1;
};

// Parses --name value, lists with commas. Defaults: all data, types and formats; all algorithms after which ranks
// have the same bits; 8 ranks. Fails for unknown names.
Result<Request> parse_request(int count, char** arguments);

}  // namespace tutti::rounding
