// Calls of the ranks of a communicator that one thread runs.
#pragma once

#include "tests/base/case_sampling.h"
#include "tests/communicator/device/part.h"

namespace tutti::test {

// Runs one call on each own rank, in a group. Returns an error or an empty string.
inline std::string run_collective(DeviceRanks& own, Rank first, const CallShape& shape) {
  std::vector<Part> parts;
  std::vector<DeviceCall> calls;
  for (Rank i = 0; i < own.size(); ++i) {
    parts.emplace_back(own, first + i, shape, (shape.turn + first + i) % 2 == 0);
    calls.push_back(own.call(i, parts.back().call()));
  }
  const Status status = enqueue(calls);
  if (!status.ok()) return describe(shape.problem) + ": " + status.message();
  own.synchronize();
  for (const Part& part : parts) {
    if (!part.error().empty()) return part.error();
  }
  return "";
}

// Runs every collective `turns` times. Returns "right" if all results are correct, else an error.
inline std::string run_collectives(DeviceRanks& own, Rank first, Rank ranks, std::uint32_t turns = 2) {
  std::mt19937_64 random(kSeed);
  OneOf shapes(5);
  for (std::uint32_t turn = 0; turn < turns; ++turn) {
    for (CallShape shape : shapes_of(ranks, random)) {
      if (!shapes.takes()) continue;
      shape.turn += turn * 1000;
      const std::string error = run_collective(own, first, shape);
      if (!error.empty()) return error;
    }
  }
  return "right";
}

// Sums up long buffers in a sub-communicator of the first own rank, to which `ranks` ranks belong. Returns "right" or
// an error.
inline std::string run_sum_in(DeviceRanks& own, Communicator& part, Rank ranks) {
  constexpr std::uint64_t kSummed = 50'000;
  auto* buffer = own.take<float>(kSummed, 1);
  DeviceCall call = own.call(0, call_of(Collective::all_reduce, DataType::float32, kSummed, buffer, buffer));
  call.communicator = &part;
  const Status status = enqueue({&call, 1});
  own.synchronize();
  return status.ok() && buffer[kSummed - 1] == static_cast<float>(ranks) ? "right" : "wrong: " + status.message();
}

// In one group, each rank sends to and receives from all ranks, including itself. Returns "right" or an error.
inline std::string run_messages(DeviceRanks& own, Rank first, Rank ranks, std::uint64_t count) {
  std::vector<DeviceCall> calls;
  std::vector<std::pair<Rank, const std::int32_t*>> received;  // Expected value and received elements.
  for (Rank i = 0; i < own.size(); ++i) {
    for (Rank peer = 0; peer < ranks; ++peer) {
      auto* from = own.take<std::int32_t>(count, static_cast<std::int32_t>(1000 * (first + i) + peer));
      auto* to = own.take<std::int32_t>(count, -1);
      Call call = call_of(Collective::all_reduce, DataType::int32, count, from, to);
      call.root = peer;
      for (const Kind kind : {Kind::send, Kind::recv}) {
        call.kind = kind;
        calls.push_back(own.call(i, call));
      }
      received.emplace_back(1000 * peer + first + i, to);
    }
  }
  const Status status = enqueue(calls);
  if (!status.ok()) return status.message();
  own.synchronize();
  for (const auto& [wanted, items] : received) {
    for (std::uint64_t i = 0; i < count; ++i) {
      if (items[i] != static_cast<std::int32_t>(wanted))
        return "received " + std::to_string(items[i]) + ", not " + std::to_string(wanted);
    }
  }
  return "right";
}

}  // namespace tutti::test
