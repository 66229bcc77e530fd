// All ranks of a collective whose messages are narrow, in one thread: the plans, folds and codecs that communicators
// run, over lanes that lie in this process. Each rank gets as far as its peers' messages allow, then the next.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "src/compression/format.h"
#include "src/executor/compiled_plan.h"
#include "src/executor/cpu/machine.h"

namespace tutti::rounding {

// How a call is run, which does not change what comes of it.
struct Course {
  std::uint32_t chunks = 1;
  bool backwards = false;  // The last rank goes first.
};

struct Carriage {
  CompressionFormat format = CompressionFormat::int8;
  DataType type = DataType::float32;
};

class Crew {
 public:
  // For blocks of so many elements.
  Crew(const Algorithm& algorithm, const Problem& problem, std::uint64_t count);

  // Sums over the ranks' buffers. Fails if the ranks wait for each other.
  Status run(const Carriage& carriage, std::span<const RankBuffers> buffers, const Course& course);

 private:
  // Both ends of a lane.
  struct Lane {
    LaneWords words = {};
    LaneCredits credits = {};
    LaneState writer, reader;
    std::unique_ptr<std::byte[]> slots;
  };
  struct Member {
    std::unique_ptr<CompiledPlan> plan;
    Launch launch;
    MachineMemory memory;
    std::vector<float> scratch;
    std::optional<Interpreter<CpuMachine>> interpreter;
    bool done = false;
  };

  LaneState* end(Rank self, const Operand& operand, bool sends);
  Status advance(Member& member, bool& moved);

  Problem problem_;
  std::uint64_t count_;
  std::uint64_t slot_groups_;  // Elements of a slot, in groups.
  std::uint32_t calls_ = 0;
  std::map<std::tuple<Rank, Rank, std::uint16_t>, Lane> lanes_;  // By writer, reader and tag.
  std::vector<Member> members_;
};

}  // namespace tutti::rounding
