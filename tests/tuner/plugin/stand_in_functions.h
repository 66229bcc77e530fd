// Functions of both versions of fake plugins. A context is a pointer whose value is the context's index plus one.
#pragma once

#include <mutex>

#include "tests/tuner/plugin/stand_in.h"

extern "C" tutti::test::StandIn stand_in;
tutti::test::StandIn stand_in;

namespace tutti::test {

inline std::mutex note_failure;

// Creates a context. Only version 5 passes `domains` and `communicator`.
inline std::int32_t begin(std::size_t ranks, std::size_t hosts, const nccl_tuner::NvlinkDomains& domains,
                          void** context, std::uint64_t communicator = 0) {
  const std::lock_guard lock(note_failure);
  stand_in.domains = domains;
  stand_in.ranks = ranks;
  stand_in.hosts = hosts;
  stand_in.communicators.push_back(communicator);
  if (stand_in.init_error != 0) return stand_in.init_error;
  *context = reinterpret_cast<void*>(static_cast<std::intptr_t>(++stand_in.contexts));
  return 0;
}

inline std::int32_t advise(void* context, std::int32_t collective, std::size_t bytes, std::int32_t, float** table,
                           std::int32_t algorithms, std::int32_t protocols, std::int32_t registered,
                           std::int32_t* channels) {
  const std::lock_guard lock(note_failure);
  if (algorithms != nccl_tuner::kRows || protocols != nccl_tuner::kColumns) return 1;
  auto& times = *reinterpret_cast<nccl_tuner::Table*>(table);
  ++stand_in.answers;
  stand_in.before = times;
  stand_in.requested = {static_cast<std::int32_t>(reinterpret_cast<std::intptr_t>(context)) - 1, collective, bytes,
                        registered};
  return stand_in.answer == nullptr ? 0 : stand_in.answer(stand_in.requested, times, *channels);
}

inline std::int32_t end(void*) {
  const std::lock_guard lock(note_failure);
  ++stand_in.ended;
  return stand_in.end_error;
}

}  // namespace tutti::test
