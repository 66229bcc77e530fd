// Calls by copy engines between devices of the stand-in.
#pragma once

#include <vector>

#include "tests/ptx/window_memory.h"

namespace tutti::test {

inline constexpr const char* kRequest = "copy_engines";
inline constexpr std::size_t kBlockBytes = 4096;

inline std::string run_members(Rank ranks, const MemberWork& work) { return run_ranks(ranks, "none", work, kRequest); }

inline Call gather_call(const WindowMemory& window, std::size_t input = 0, std::size_t output = kOutputAt) {
  return call_of(Collective::all_gather, DataType::uint8, kBlockBytes, window.at(input), window.at(output));
}

inline DeviceCall requested(const Member& member, const Call& call, std::int64_t timeout_ms = 500'000) {
  DeviceCall made = member.own.call(0, call);
  made.options.algorithm = kRequest;
  made.options.timeout_ms = timeout_ms;
  made.options.update_agreement_hash();
  return made;
}

inline std::vector<std::byte> block_of(Rank rank, std::uint32_t turn) {
  std::vector<std::byte> block(kBlockBytes);
  for (std::size_t i = 0; i < block.size(); ++i) block[i] = static_cast<std::byte>(rank * 50 + turn * 7 + i % 5);
  return block;
}

inline std::vector<std::byte> blocks_of(Rank ranks, std::uint32_t turn) {
  std::vector<std::byte> all;
  for (Rank rank = 0; rank < ranks; ++rank) {
    const std::vector<std::byte> block = block_of(rank, turn);
    all.insert(all.end(), block.begin(), block.end());
  }
  return all;
}

// Returns host memory of the device with these bytes, which copies in streams may read.
inline std::byte* on_host(const Member& member, const std::vector<std::byte>& bytes) {
  auto* memory = member.own.take<std::byte>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), memory);
  return memory;
}

}  // namespace tutti::test
