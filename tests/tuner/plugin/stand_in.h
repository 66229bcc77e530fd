// Fake tuner plugins: separate libraries that call a function of the test for their answers.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <vector>

#include "src/tuner/plugin/abi.h"

namespace tutti::test {

struct AskedCall {
  std::int32_t context = 0;  // Index of the context, in order of creation.
  std::int32_t collective = 0;
  std::size_t bytes = 0;
  std::int32_t registered = 0;
};

// State of a fake plugin. Each library exports one as `stand_in`.
struct StandIn {
  std::int32_t init_error = 0, end_error = 0;
  std::int32_t (*answer)(const AskedCall&, nccl_tuner::Table&, std::int32_t& channels) = nullptr;  // Null: no change.
  // Arguments of the latest calls.
  std::size_t ranks = 0, hosts = 0;
  nccl_tuner::NvlinkDomains domains = {};
  AskedCall requested;
  nccl_tuner::Table before = {};
  std::int32_t contexts = 0, ended = 0, answers = 0;
  std::vector<std::uint64_t> communicators;  // Version 5 only, in order of creation.
};

inline StandIn& stand_in_of(const char* path) {
  void* library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return *static_cast<StandIn*>(::dlsym(library, "stand_in"));
}

}  // namespace tutti::test
