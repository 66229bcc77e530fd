// Runs all ranks of a compressed collective in one thread, with the plans, folds and codecs of communicators and lanes
// in the memory of this process. Each rank advances until it must wait for messages of its peers; then the next rank
// advances.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "src/compression/format.h"
#include "src/executor/compiled_plan.h"
#include "src/executor/cpu/backend.h"

namespace tutti::rounding {

// Order of execution of a call, which must not change its results.
struct RunOrder {
  std::uint32_t chunks = 1;
  bool backwards = false;  // Advance ranks in descending order.
};

struct TensorFormat {
  CompressionFormat format = CompressionFormat::int8;
  DataType type = DataType::float32;
};

class SerialRanks {
 public:
  // `count`: elements per block.
  SerialRanks(const Algorithm& algorithm, const Problem& problem, std::uint64_t count);

  // Runs the collective with the sum on the ranks' buffers. Fails if the ranks deadlock.
  Status run(const TensorFormat& tensor, std::span<const RankBuffers> buffers, const RunOrder& order);

 private:
  // A lane with both ends.
  struct Lane {
    LaneWords words = {};
    LaneCredits credits = {};
    LaneState writer, reader;
    std::unique_ptr<std::byte[]> slots;
  };
  struct Member {
    std::unique_ptr<CompiledPlan> plan;
    Launch launch;
    BackendMemory memory;
    std::vector<float> scratch;
    std::optional<Interpreter<CpuBackend>> interpreter;
    bool done = false;
  };

  LaneState* end(Rank self, const Operand& operand, bool sends);
  Status advance(Member& member, bool& moved);

  Problem problem_;
  std::uint64_t count_;
  std::uint64_t slot_groups_;  // Capacity of a slot in compression groups.
  std::uint32_t calls_ = 0;
  std::map<std::tuple<Rank, Rank, std::uint16_t>, Lane> lanes_;  // [{writer, reader, tag}]
  std::vector<Member> members_;
};

}  // namespace tutti::rounding
