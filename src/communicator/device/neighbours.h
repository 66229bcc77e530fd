// The ranks of a communicator on devices, as one of them sees the others: where lanes to and from them lie, and how
// much of the devices each can count on.
#pragma once

#include <memory>
#include <vector>

#include "src/communicator/communicator.h"
#include "src/communicator/device/home.h"
#include "src/communicator/device/inbox.h"

namespace tutti {

class Neighbours {
 public:
  // All ranks call it, and block until they have. Several members are all this process's, driven by this thread; one
  // set for each of them.
  static Result<std::vector<Neighbours>> meet(const std::vector<std::unique_ptr<Communicator>>& members,
                                              const std::shared_ptr<Device>& device);

  // Returns once all ranks have called it.
  static Status await_all(const std::vector<Communicator*>& members);

  Neighbours(Neighbours&&) = default;
  Neighbours& operator=(Neighbours&&) = delete;
  ~Neighbours();

  // A lane of which this rank has an end.
  Result<LanePair> lane(const LaneSpec& spec);

  // Closes what it has opened of other processes: no call may follow.
  void let_go();

  // This rank's own.
  DeviceHome& home() const { return *homes_[self_]; }
  const std::shared_ptr<DeviceHome>& shared_home() const { return homes_[self_]; }
  // Of a rank of this process.
  DeviceHome& home(Rank rank) const { return *homes_[rank]; }
  bool all_in_process() const { return foreign_ == 0; }
  // Then each rank's teams reach all buffers. Of another device they reach only what was allocated plainly.
  bool on_one_device() const { return one_device_; }
  Rank ranks() const { return static_cast<Rank>(homes_.size()); }
  // Channels of a rank that can be under way at once; the same on all ranks.
  std::uint32_t teams() const { return teams_; }
  // Most channels with lanes of their own.
  std::uint32_t lane_channels() const { return lane_channels_; }
  // The same for the ranks of one communicator in this process alone.
  std::uint64_t family() const { return family_; }

 private:
  struct Card;
  Neighbours(Rank self, std::vector<std::shared_ptr<DeviceHome>> homes) : self_(self), homes_(std::move(homes)) {}
  static Result<Neighbours> among(const std::vector<Card>& cards, Rank self, const std::shared_ptr<DeviceHome>& own);
  Status open_inboxes(const std::vector<Card>& cards);

  Rank self_;
  std::vector<std::shared_ptr<DeviceHome>> homes_;  // By rank; null: in another process.
  std::vector<Inbox> to_, from_;                    // By rank; of those in another process.
  std::vector<std::byte*> opened_;                  // Memory of theirs.
  Rank foreign_ = 0;                                // How many they are.
  bool one_device_ = false;
  std::uint32_t teams_ = 0, lane_channels_ = 0;
  std::uint64_t family_ = 0;
};

}  // namespace tutti
