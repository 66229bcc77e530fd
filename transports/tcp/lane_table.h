// Lanes of one connection for all its communicators, and which of these have ended at which end.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "transports/half_lane.h"

namespace tutti {

// Memory for this end's halves of all lanes of a communicator, which lie one after the other.
struct LaneRegion {
  LaneMemory memory;
  std::size_t bytes = 0;
  LaneMemory slots;  // Slots of all lanes, if they are apart from the counters.
  std::size_t slots_bytes = 0;
  bool holds_ll = false;  // The slots may be those of LL: they are zeroed, and the carrier supports LL.
};

class LaneTable {
 public:
  struct Numbered {
    std::uint32_t number = 0;
    HalfLane* half = nullptr;
  };
  using Numbers = std::vector<Numbered>;  // Ascending.
  using Allocate = std::function<Result<LaneMemory>(std::size_t)>;

  explicit LaneTable(Allocate allocate) : allocate_(std::move(allocate)) {}

  // Places all halves of this context in `region`. The context must not have halves yet.
  void attach_memory(std::uint32_t context, LaneRegion region);

  // Returns this end's half, and creates it if necessary.
  Result<HalfLane*> half(std::uint32_t context, const LaneSpec& spec, LaneEnd end);
  const HalfLane* known(std::uint32_t context, const LaneSpec& spec) const {
    const auto found = known_.find({context, spec});
    return found == known_.end() ? nullptr : found->second.get();
  }
  // Assigns a number to a half that this end writes. Returns true if it had none.
  bool number(HalfLane& half, std::uint32_t& number);
  // Registers a lane that the other end has announced. `number` must be the next one. Returns null if the communicator
  // has ended at this end.
  Result<HalfLane*> accept(std::uint32_t number, std::uint32_t context, const LaneSpec& spec);

  const Numbers& writing() const { return writing_; }
  const Numbers& reading() const { return reading_; }
  // Return null if the lane's communicator has ended at this end. Fail if the number was never assigned.
  Result<HalfLane*> find_writing(std::uint32_t number) const { return find(writing_, number, next_writing_); }
  Result<HalfLane*> find_reading(std::uint32_t number) const { return find(reading_, number, next_reading_); }

  // A communicator that has ended at this end. Its halves are not in the table any more, but live until drop().
  struct Ended {
    std::uint32_t context = 0;
    std::vector<std::pair<std::uint32_t, std::unique_ptr<HalfLane>>> writing, reading;
    std::vector<std::unique_ptr<HalfLane>> unnumbered;
    bool reported = false;  // The other end has been notified, or the frame is queued.
  };
  void close(std::uint32_t context);
  std::vector<Ended>& ended() { return ended_; }
  bool closed_here(std::uint32_t context) const;
  bool closed_there(std::uint32_t context) const { return closed_there_.contains(context); }
  void close_there(std::uint32_t context) { closed_there_.insert(context); }
  // Forgets the context.
  void drop(std::uint32_t context);

 private:
  using LaneKey = std::pair<std::uint32_t, LaneSpec>;
  struct Attached {
    LaneRegion region;
    std::size_t used = 0, slots_used = 0;
  };
  Result<HalfMemory> memory_for(std::uint32_t context, const LaneSpec& spec);
  static Result<HalfLane*> find(const Numbers& numbers, std::uint32_t number, std::uint32_t next);

  Allocate allocate_;
  std::map<std::uint32_t, Attached> attached_;
  std::map<LaneKey, std::unique_ptr<HalfLane>> known_;
  Numbers writing_, reading_;
  std::uint32_t next_writing_ = 0, next_reading_ = 0;  // Numbers are never reused.
  std::vector<Ended> ended_;
  std::set<std::uint32_t> closed_there_;
};

}  // namespace tutti
