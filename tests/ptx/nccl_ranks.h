// Ranks of libnccl.so.2 in a child process with its own settings, each a thread with a device.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <barrier>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/bootstrap/processes.h"

namespace tutti::test {

using Settings = std::vector<std::pair<const char*, std::string>>;

// Runs `body` in a child with the settings, which the stand-in and the library read once per process. Returns its
// report.
inline std::string run_with(const Settings& settings, const Processes::Work& body) {
  Processes processes;
  processes.start([&] {
    for (const auto& [name, value] : settings) ::setenv(name, value.c_str(), 1);
    return body();
  });
  return processes.report(0);
}

struct NcclMember {
  ncclComm_t comm;
  int rank;
  cudaStream_t stream;
  std::barrier<>& meet;
};

// "" if the call succeeded.
inline std::string problem(ncclResult_t result, const char* call) {
  return result == ncclSuccess ? "" : std::string(call) + ": " + ncclGetLastError(nullptr);
}
inline std::string problem(cudaError_t error, const char* call) {
  return error == cudaSuccess ? "" : std::string(call) + ": " + cudaGetErrorString(error);
}
#define TUTTI_RETURN_PROBLEM(call) \
  if (std::string found = tutti::test::problem(call, #call); !found.empty()) return found

using NcclWork = std::function<std::string(const NcclMember&)>;

inline std::string run_member(const ncclUniqueId& id, const ncclConfig_t& wanted, NcclMember member,
                              const NcclWork& work) {
  ncclConfig_t config = wanted;
  TUTTI_RETURN_PROBLEM(cudaSetDevice(member.rank));
  TUTTI_RETURN_PROBLEM(cudaStreamCreateWithFlags(&member.stream, cudaStreamNonBlocking));
  TUTTI_RETURN_PROBLEM(ncclCommInitRankConfig(&member.comm, 2, id, member.rank, &config));
  std::string report = work(member);
  TUTTI_RETURN_PROBLEM(ncclCommDestroy(member.comm));
  return report;
}

// Runs two ranks with a device each. Returns the common report of the ranks, or both.
inline std::string run_nccl_ranks(Settings settings, const ncclConfig_t& config, const NcclWork& work) {
  settings.emplace_back("TUTTI_PTX_DEVICES", "2");
  return run_with(settings, [&]() -> std::string {
    ncclUniqueId id;
    TUTTI_RETURN_PROBLEM(ncclGetUniqueId(&id));
    std::barrier<> meet(2);
    std::string reports[2];
    std::thread other([&] { reports[1] = run_member(id, config, {nullptr, 1, nullptr, meet}, work); });
    reports[0] = run_member(id, config, {nullptr, 0, nullptr, meet}, work);
    other.join();
    return reports[0] == reports[1] ? reports[0] : reports[0] + ", " + reports[1];
  });
}

}  // namespace tutti::test
