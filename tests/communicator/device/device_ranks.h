// Ranks on one device, each with its own stream, and memory that the device and the host can access.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "src/base/config.h"
#include "src/communicator/device/enqueue.h"
#include "tests/communicator/communicators.h"
#include "tests/executor/device_rig.h"

namespace tutti::test {

// Returns the timeout of a test's calls. It is limited on a GPU, since a hang would take time from other tests.
inline std::int64_t test_timeout_ms(DeviceRig& rig, std::int64_t timeout_ms) {
  constexpr std::int64_t kMax = 20'000;
  const bool endless = timeout_ms <= 0 || timeout_ms > kMax;
  const bool emulator = dynamic_cast<const HostDevice*>(&rig.device()) != nullptr;
  return endless && !emulator ? kMax : timeout_ms;
}

// Sets the transport to that of the environment, unless the options have one. ctest uses this to repeat tests over a
// network.
inline CommunicatorOptions over_transport(CommunicatorOptions options = {}) {
  if (options.transport.empty()) options.transport = config().transport;
  return options;
}
inline bool over_network() { return over_transport().over_network(); }

class DeviceRanks {
 public:
  // Creates all ranks in this process; this thread runs them.
  DeviceRanks(DeviceRig& rig, Rank ranks, const CommunicatorOptions& options = {})
      : DeviceRanks(rig, all_here(ranks, options)) {}
  // Creates some ranks of a communicator. Functions below take indices into `members`.
  DeviceRanks(DeviceRig& rig, Communicators members) : rig_(rig), communicators_(std::move(members)) {
    // The rig owns the device and outlives the ranks.
    const std::shared_ptr<Device> device(&rig.device(), [](Device*) {});
    std::vector<Communicator*> all;
    for (const auto& communicator : communicators_) all.push_back(communicator.get());
    const Status attached = DeviceBackend::attach(all, device);
    EXPECT_TRUE(attached.ok()) << attached.message();
    for (std::size_t i = 0; i < communicators_.size(); ++i) streams_.push_back(rig.make_stream());
  }
  ~DeviceRanks() {
    for (DeviceStream stream : streams_) (void)rig_.synchronize(stream);
    communicators_.clear();
    for (const HostMemory& memory : memory_) rig_.device().free_host(memory);
    for (DeviceStream stream : streams_) rig_.destroy_stream(stream);
  }
  DeviceRanks(const DeviceRanks&) = delete;
  DeviceRanks& operator=(const DeviceRanks&) = delete;

  Rank size() const { return static_cast<Rank>(communicators_.size()); }
  Communicator& operator[](Rank rank) { return *communicators_[rank]; }
  DeviceBackend& backend(Rank rank) { return *communicators_[rank]->on_device(); }
  void end(Rank rank) { communicators_[rank] = nullptr; }
  DeviceRig& rig() const { return rig_; }
  DeviceStream stream(Rank rank) const { return streams_[rank]; }

  template <typename T>
  T* take(std::size_t count, T value = {}) {
    memory_.push_back(rig_.device().allocate_host((count + 1) * sizeof(T)).value());
    T* items = reinterpret_cast<T*>(memory_.back().host);
    std::fill_n(items, count, value);
    return items;
  }

  DeviceCall call(Rank rank, const Call& call) {
    DeviceCall made = {
        .communicator = &(*this)[rank], .call = call, .options = (*this)[rank].options(), .stream = stream(rank)};
    made.options.timeout_ms = test_timeout_ms(rig_, made.options.timeout_ms);
    return made;
  }

  // Waits for all streams.
  void synchronize() {
    for (DeviceStream stream : streams_) {
      const Status status = rig_.synchronize(stream);
      EXPECT_TRUE(status.ok()) << status.message();
    }
  }

 private:
  static Communicators all_here(Rank ranks, const CommunicatorOptions& given) {
    CommunicatorOptions options = over_transport(given);
    options.update_agreement_hash();
    auto members = Communicator::create_all(ranks, options);
    EXPECT_TRUE(members.ok());
    return std::move(members).value();
  }

  DeviceRig& rig_;
  Communicators communicators_;
  std::vector<DeviceStream> streams_;
  std::vector<HostMemory> memory_;
};

inline Call call_of(Collective collective, DataType type, std::uint64_t count, const void* input, void* output) {
  Call call;
  call.collective = collective;
  call.type = type;
  call.count = count;
  call.input = static_cast<const std::byte*>(input);
  call.output = static_cast<std::byte*>(output);
  return call;
}

inline std::string kind_of(const testing::TestParamInfo<DeviceKind>& parameter) { return parameter.param.name; }

class OnDevices : public testing::TestWithParam<DeviceKind> {
 protected:
  void SetUp() override {
    rig_ = GetParam().make();
    if (rig_ == nullptr) GTEST_SKIP() << "there is no such device here";
  }
  std::unique_ptr<DeviceRig> rig_;
};

}  // namespace tutti::test
