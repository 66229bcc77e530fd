// Lanes between devices of a host.
#include "src/communicator/peers/links.h"

#include "src/communicator/host/connected_plans.h"
#include "tests/communicator/device/device_ranks.h"

namespace tutti::test {
namespace {

// Lanes must have as many slots as fit into their budget: the further a writer can run ahead, the less it waits.
TEST(DeviceLinks, HaveAllSlotsOfTheirBudget) {
  const std::unique_ptr<DeviceRig> rig = host_rig({});
  const std::shared_ptr<Device> device(&rig->device(), [](Device*) {});
  const Communicators members = std::move(Communicator::create_all(1, {})).value();
  auto peers = std::move(PeerSet::connect({members.front().get()}, device)).value();
  const DeviceLinks links(0, peers.front());
  for (const LaneForm form : {LaneForm::one_way, LaneForm::round_trip, LaneForm::swap}) {
    for (const Protocol protocol : {Protocol::ll, Protocol::simple}) {
      const LaneSpec spec = links.spec({.peer = 1, .form = form}, protocol);
      EXPECT_EQ(spec.slot_shift, 3U);
      EXPECT_EQ(spec.slot_shift, message_spec(0, 1, 0).slot_shift);
      EXPECT_GT(1U << spec.slot_shift, kSimpleSlots);
      EXPECT_EQ(spec.form, LaneForm::one_way);
    }
  }
}

}  // namespace
}  // namespace tutti::test
