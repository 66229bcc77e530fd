// Lanes between devices of a host.
#include "src/communicator/peers/device_lanes.h"

#include "tests/communicator/device/device_ranks.h"

namespace tutti::test {
namespace {

// Within a host, lanes have the slots that proofs assume. More slots would take memory from channels.
TEST(DeviceLanes, HaveSlotsThatProofsAssume) {
  const std::unique_ptr<DeviceRig> rig = host_rig({});
  const std::shared_ptr<Device> device(&rig->device(), [](Device*) {});
  const Communicators members = std::move(Communicator::create_all(2, {})).value();
  auto peers = std::move(PeerSet::connect({members[0].get(), members[1].get()}, device)).value();
  const DeviceLanes lanes(0, peers.front());
  for (const LaneForm form : {LaneForm::one_way, LaneForm::round_trip, LaneForm::swap}) {
    for (const Protocol protocol : {Protocol::ll, Protocol::simple}) {
      const LaneSpec spec = lanes.spec({.peer = 1, .form = form}, protocol);
      EXPECT_EQ(1U << spec.slot_shift, kSlotsAhead);
      EXPECT_EQ(spec.form, LaneForm::one_way);
    }
  }
}

}  // namespace
}  // namespace tutti::test
