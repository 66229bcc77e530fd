// Ranks of one process on the stand-in, each with a device and a thread of its own.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/bootstrap/processes.h"
#include "tests/communicator/device/device_ranks.h"

namespace tutti::test {

// A rank, its device, and where it meets the other threads: memory is allocated before any rank calls, since an
// allocation may wait for kernels that wait for this rank.
struct Member {
  DeviceRanks& own;
  Rank rank, ranks;
  std::barrier<>& meet;
};

using MemberWork = std::function<std::string(const Member& member)>;

// Runs `work` in a child with a device and a thread per rank, of a communicator that requests `algorithm`. Returns
// "right" or the first error, and a warning that switches are not used. `host_of`: the emulated host of each rank.
// `carriers`: between the hosts; null: TCP alone.
inline std::string run_ranks_on_hosts(const std::vector<Rank>& host_of, const char* multicast, const MemberWork& work,
                                      const char* algorithm = "", CarrierSource* carriers = nullptr) {
  Processes processes;
  processes.start([&]() -> std::string {
    const auto ranks = static_cast<Rank>(host_of.size());
    ::setenv("TUTTI_PTX_DEVICES", std::to_string(ranks).c_str(), 1);
    ::setenv("TUTTI_PTX_MULTICAST", multicast, 1);
    testing::internal::CaptureStderr();
    CommunicatorOptions options;
    options.algorithm = algorithm;
    if (host_of.front() != host_of.back()) options.transport = "tcp";
    options.update_agreement_hash();
    auto members = std::move(Communicator::create_all(Hosts(host_of), options, carriers)).value();
    std::vector<std::string> results(ranks);
    std::barrier<> meet(ranks);
    std::vector<std::thread> threads;
    for (Rank rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        cudaSetDevice(static_cast<int>(rank));
        const auto rig = cuda_rig();
        Communicators mine;
        mine.push_back(std::move(members[rank]));
        DeviceRanks own(*rig, std::move(mine));
        results[rank] = work({own, rank, ranks, meet});
        meet.arrive_and_drop();
      });
    }
    for (std::thread& thread : threads) thread.join();
    const std::string log = testing::internal::GetCapturedStderr();
    for (const std::string& result : results)
      if (result != "right") return result + ": " + log;
    const std::size_t sentence = std::min(log.find("sums do not use"), log.find("sums in a window do not use"));
    return "right" + (sentence == std::string::npos ? "" : ": " + log.substr(sentence));
  });
  return processes.report(0);
}
// The same on one host.
inline std::string run_ranks(Rank ranks, const char* multicast, const MemberWork& work, const char* algorithm = "") {
  return run_ranks_on_hosts(std::vector<Rank>(ranks), multicast, work, algorithm);
}

}  // namespace tutti::test
