// Ranks of one process on several devices, which may lack peer access. A thread per device runs its ranks.
#pragma once

#include <thread>

#include "tests/communicator/device/own_calls.h"

namespace tutti::test {

class Islands {
 public:
  // Creates one device for each element of `options`, with `ranks_each` ranks. Sets different ordinals.
  Islands(std::vector<HostDeviceOptions> options, Rank ranks_each, const CommunicatorOptions& communicator = {}) {
    const auto devices = static_cast<Rank>(options.size());
    CommunicatorOptions forced = communicator;
    forced.update_agreement_hash();
    auto members = std::move(Communicator::create_all(devices * ranks_each, forced)).value();
    islands_.resize(devices);
    for (Rank i = 0; i < devices; ++i) {
      options[i].ordinal = i;
      islands_[i].rig = host_rig(options[i]);
      islands_[i].first = i * ranks_each;
    }
    each([&](Island& island) {
      Communicators own;
      for (Rank i = 0; i < ranks_each; ++i) own.push_back(std::move(members[island.first + i]));
      island.ranks = std::make_unique<DeviceRanks>(*island.rig, std::move(own));
    });
  }

  // Destroys all ranks before the devices, since ranks may use memory of each other's devices.
  ~Islands() { end_ranks(); }
  Islands(const Islands&) = delete;
  Islands& operator=(const Islands&) = delete;

  DeviceRanks& operator[](std::size_t island) { return *islands_[island].ranks; }
  HostDeviceUsage usage(std::size_t island) {
    return dynamic_cast<HostDevice&>(islands_[island].rig->device()).usage();
  }

  // Runs `work` on all devices concurrently and expects that it returns "right".
  void expect_right(const std::function<std::string(DeviceRanks& own, Rank first)>& work) {
    std::vector<std::string> errors(islands_.size());
    each([&](Island& island) {
      errors[static_cast<std::size_t>(&island - islands_.data())] = work(*island.ranks, island.first);
    });
    for (const std::string& error : errors) EXPECT_EQ(error, "right");
  }

  // Destroys the ranks, but not the devices.
  void end_ranks() {
    each([](Island& island) { island.ranks.reset(); });
  }

 private:
  struct Island {
    std::unique_ptr<DeviceRig> rig;
    std::unique_ptr<DeviceRanks> ranks;
    Rank first = 0;
  };
  void each(const std::function<void(Island&)>& work) {
    std::vector<std::thread> threads;
    for (Island& island : islands_) threads.emplace_back([&] { work(island); });
    for (std::thread& thread : threads) thread.join();
  }

  std::vector<Island> islands_;
};

}  // namespace tutti::test
