// A carrier within one process that implements carrier.h with plain memory. It can violate the contract on request
// (Fault).
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/file.h"
#include "src/executor/lane_operations.h"
#include "transports/carrier.h"

namespace tutti::test {

enum class Fault : std::uint8_t {
  none,
  refuse_connect,
  refuse_reach,
  no_room,  // Every other put() and credit() returns false.
  wrong_number,
  too_long,
  no_such_lane,
  undue_credits,
  fewer_credits,
  late,              // Delivers messages only in the 20th call of advance().
  cannot_send,       // The same, and advance() fails from the first message on.
  no_announcement,   // Never announces that the other end puts nothing more.
  reports_late,      // Delivers at once, and reports messages only in each 20th call of advance().
  halves_late,       // The same, but stores the second half of each word of LL only then.
  break_down,        // Fails at the first message.
  break_down_later,  // Fails at message number 2 of a lane.
};

// State shared by two ends.
struct MemoryPipe {
  struct Message {
    MessageHead head;
    const std::byte* data;
  };
  struct Landed {
    LaneMemory memory;
    LaneView view;
  };
  struct End {
    std::vector<Message> messages;  // Messages to this end, still in the other's slots.
    std::vector<std::pair<std::uint32_t, std::uint64_t>> credits;
    std::map<std::uint32_t, Landed> landed;
    std::map<std::uint32_t, std::uint64_t> gone;  // [lane]: number of its own messages that the other end has copied.
    File bell{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  };
  std::mutex mutex;
  End ends[2];
};

class MemoryCarrier : public Carrier {
 public:
  MemoryCarrier(std::shared_ptr<MemoryPipe> pipe, int which, Fault fault)
      : pipe_(std::move(pipe)), mine_(pipe_->ends[which]), other_(pipe_->ends[1 - which]), fault_(fault) {}

  ~MemoryCarrier() override {  // Drops messages that the other end has not received.
    const std::lock_guard lock(pipe_->mutex);
    other_.messages.clear();
    mine_.landed.clear();
  }

  std::string name() const override { return "memory"; }
  std::string describe() const override { return "memory, of a test"; }
  std::vector<std::byte> address() const override { return {std::byte{7}}; }
  Status connect(std::span<const std::byte> address) override {
    if (fault_ == Fault::refuse_connect) return unsupported("it does not want to");
    return address.size() == 1 && address[0] == std::byte{7} ? Status() : remote_error("a strange address");
  }

  Result<LaneMemory> allocate(std::size_t bytes) override { return HalfLane::allocate_shared(bytes); }
  Result<RegisteredRegion> register_device_memory(const DeviceRegion& region) override {
    if (fault_ == Fault::refuse_reach) return Carrier::register_device_memory(region);
    return RegisteredRegion{region.memory, "memory"};
  }
  bool supports_ll() const override { return true; }
  Result<std::vector<std::byte>> register_reader(std::uint32_t lane, const HalfLane& reading) override {
    const std::lock_guard lock(pipe_->mutex);
    mine_.landed[lane] = {reading.memory.slots, reading.view};
    return std::vector<std::byte>(3, std::byte{1});
  }
  Status attach(std::uint32_t lane, const HalfLane& writing, std::span<const std::byte> landing) override {
    attached_[lane] = writing.memory.slots;
    return landing.size() == 3 ? Status() : remote_error("a strange landing");
  }
  void forget(std::uint32_t lane, LaneEnd end) override {
    const std::lock_guard lock(pipe_->mutex);
    if (end == LaneEnd::reader) {
      mine_.landed.erase(lane);
    } else {
      attached_.erase(lane);
    }
  }

  Result<bool> put(const MessageHead& head, const std::byte* data) override {
    const std::lock_guard lock(pipe_->mutex);
    if (fault_ == Fault::no_room && (calls_++ % 2) == 0) return false;
    MessageHead sent_head = head;
    if (fault_ == Fault::wrong_number && head.number == 2) ++sent_head.number;
    if (fault_ == Fault::too_long && head.number == 2) sent_head.bytes = 1U << 30;
    if (fault_ == Fault::no_such_lane && head.number == 2) sent_head.lane = 77;
    other_.messages.push_back({sent_head, data});
    ring(other_);
    return true;
  }
  Result<bool> credit(std::uint32_t lane, std::uint64_t taken) override {
    const std::lock_guard lock(pipe_->mutex);
    if (fault_ == Fault::no_room && (calls_++ % 2) == 0) return false;
    if (fault_ == Fault::undue_credits) taken += 1000;
    other_.credits.emplace_back(lane, taken);
    if (fault_ == Fault::fewer_credits) other_.credits.emplace_back(lane, taken - 1);
    ring(other_);
    return true;
  }
  Status advance(CarrierEvents& events) override {
    const std::lock_guard lock(pipe_->mutex);
    std::uint64_t rings = 0;
    (void)!::read(mine_.bell.get(), &rings, sizeof rings);
    const Status sent =
        fault_ == Fault::cannot_send && !mine_.messages.empty() ? remote_error("memory cannot send") : Status();
    if (is_late() && !mine_.messages.empty() && ++late_calls_ < 20) return sent.copy();
    const bool halves = fault_ == Fault::halves_late;
    if ((halves || fault_ == Fault::reports_late) && ++late_calls_ % 20 != 0) {
      for (const MemoryPipe::Message& message : mine_.messages) deliver(message, halves);
      return {};
    }
    for (const MemoryPipe::Message& message : mine_.messages) {
      const bool late = fault_ == Fault::break_down_later && message.head.number == 2;
      if (fault_ == Fault::break_down || late) return remote_error("memory is out of order");
      deliver(message);
      other_.gone[message.head.lane] = message.head.number + 1;
      TUTTI_CHECK_OK(events.arrived(message.head));
    }
    if (!mine_.messages.empty()) ring(other_);
    mine_.messages.clear();
    for (const auto& [lane, messages] : std::exchange(mine_.gone, {})) events.left(lane, messages);
    for (const auto& [lane, taken] : std::exchange(mine_.credits, {})) TUTTI_CHECK_OK(events.credited(lane, taken));
    return sent.copy();
  }

  bool expects_messages() const override {
    const std::lock_guard lock(pipe_->mutex);
    return fault_ == Fault::no_announcement || (is_late() && !mine_.messages.empty());
  }

  int descriptor() const override { return mine_.bell.get(); }
  bool arm() override {
    const std::lock_guard lock(pipe_->mutex);
    return mine_.messages.empty() && mine_.credits.empty() && mine_.gone.empty();
  }

 private:
  // Stores a message in its slot, those of LL atomically: thread blocks poll for these.
  void deliver(const MemoryPipe::Message& message, bool halves = false) const {
    const auto landed = mine_.landed.find(message.head.lane);
    if (landed == mine_.landed.end() || message.head.bytes > landed->second.view.slot_bytes) return;
    std::byte* slot = slot_of(landed->second.view, message.head.number);
    if (landed->second.view.protocol == Protocol::simple) {
      if (message.head.bytes > 0) std::memcpy(slot, message.data, message.head.bytes);
      return;
    }
    for (std::uint32_t at = 0; at < message.head.bytes; at += 2 * sizeof(std::uint64_t)) {
      std::uint64_t data = 0;
      const std::uint64_t flag = load_pair(reinterpret_cast<const std::uint64_t*>(message.data + at), data);
      auto* words = reinterpret_cast<std::uint64_t*>(slot + at);
      halves ? store_relaxed(words, data) : store_pair(words, data, flag);
    }
  }
  bool is_late() const { return fault_ == Fault::late || fault_ == Fault::cannot_send; }
  static void ring(MemoryPipe::End& end) {
    const std::uint64_t once = 1;
    (void)!::write(end.bell.get(), &once, sizeof once);
  }

  std::shared_ptr<MemoryPipe> pipe_;
  MemoryPipe::End &mine_, &other_;
  Fault fault_;
  std::uint64_t calls_ = 0, late_calls_ = 0;
  std::map<std::uint32_t, LaneMemory> attached_;
};

// Source of connected pairs: endpoints 1 and 2 belong together, 3 and 4, and so on.
class MemorySource : public CarrierSource {
 public:
  explicit MemorySource(Fault first = Fault::none, Fault second = Fault::none) : faults_{first, second} {}
  Result<std::unique_ptr<Carrier>> make() override {
    const int which = made_++ % 2;
    if (which == 0) pipe_ = std::make_shared<MemoryPipe>();
    return std::unique_ptr<Carrier>(std::make_unique<MemoryCarrier>(pipe_, which, faults_[which]));
  }

 private:
  Fault faults_[2];
  int made_ = 0;
  std::shared_ptr<MemoryPipe> pipe_;
};

}  // namespace tutti::test
