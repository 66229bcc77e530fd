#include "src/model/costs.h"

namespace tutti {

CodingTimes coding_times(const Costs& costs, CompressionFormat compression, DataType type) {
  const auto time_us = [](const auto& rates, CompressionFormat format) {
    const double rate = rates[static_cast<std::size_t>(format)];
    return rate > 0 ? 1e-3 / rate : 0;
  };
  const CompressionFormat memory = memory_format(type);
  return {time_us(costs.encode_gbytes_per_s, compression) + time_us(costs.decode_gbytes_per_s, memory),
          time_us(costs.decode_gbytes_per_s, compression) + time_us(costs.encode_gbytes_per_s, memory)};
}

}  // namespace tutti
