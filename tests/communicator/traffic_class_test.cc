// The traffic class of a communicator reaches the queue pairs of its connections. A stand-in replaces libibverbs.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "src/bootstrap/bootstrap.h"
#include "src/communicator/call/carriers.h"
#include "src/communicator/communicator.h"
#include "src/communicator/membership/control_plane.h"
#include "tests/communicator/verbs_stand_in/stand_in.h"

namespace tutti::test {
namespace {

constexpr std::uint32_t kOfEnvironment = 32;
[[maybe_unused]] const int set = ::setenv("NCCL_IB_TC", std::to_string(kOfEnvironment).c_str(), 1);

const VerbsStandIn& stand_in() {
  void* library = ::dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << ::dlerror();
  const auto* found = static_cast<const VerbsStandIn*>(::dlsym(library, "tutti_verbs_stand_in"));
  if (found == nullptr) std::abort();  // The library of the system.
  return *found;
}

struct Classes {
  int traffic_class, service_level;
  bool operator==(const Classes&) const = default;
};

// Connects both ends of a carrier.
Classes classes_of(std::uint8_t traffic_class) {
  const auto source = std::move(open_carriers("shm+verbs", {.traffic_class = traffic_class})).value();
  const auto one = std::move(source->make()).value(), other = std::move(source->make()).value();
  EXPECT_TRUE(one->connect(other->address()).ok());
  EXPECT_TRUE(other->connect(one->address()).ok());
  return {stand_in().traffic_class(), stand_in().service_level()};
}

TEST(TrafficClass, IsThatOfPackets_OverEthernet) {
  stand_in().set_ethernet(true);
  EXPECT_EQ(classes_of(106), (Classes{106, 0}));
  EXPECT_EQ(classes_of(0), (Classes{kOfEnvironment, 0}));
}

TEST(TrafficClass, IsServiceLevel_OverInfiniBand) {
  stand_in().set_ethernet(false);
  EXPECT_EQ(classes_of(5), (Classes{-1, 5}));
  EXPECT_EQ(classes_of(106), (Classes{-1, 0}));  // InfiniBand has 16 levels.
  EXPECT_EQ(classes_of(0), (Classes{-1, 0}));
}

// Ranks that share a process, and ranks that join. Each rank is a host.
TEST(TrafficClass, IsThatOfCommunicator) {
  stand_in().set_ethernet(true);
  CommunicatorOptions options;
  options.transport = "verbs";
  options.probes = false;
  const auto connect = [&](std::vector<std::unique_ptr<Communicator>> ranks) {
    const int before = stand_in().connected();
    while (stand_in().connected() < before + 2) {
      for (Rank rank = 0; rank < 2; ++rank)
        (void)ranks[rank]->control()->membership.mesh.connection(1 - rank).advance_all();
    }
    return stand_in().traffic_class();
  };
  options.traffic_class = 8;
  EXPECT_EQ(connect(std::move(Communicator::create_all(2, options)).value()), 8);

  options.traffic_class = 9;
  const UniqueId id = make_unique_id({}).value();
  std::vector<std::unique_ptr<Communicator>> ranks(2);
  std::thread other([&] { ranks[1] = std::move(Communicator::create(id, 1, 2, options)).value(); });
  ranks[0] = std::move(Communicator::create(id, 0, 2, options)).value();
  other.join();
  EXPECT_EQ(connect(std::move(ranks)), 9);
}

}  // namespace
}  // namespace tutti::test
