// One end of what two ranks have between them by UCX: an endpoint, and what is under way in the lanes of one
// connection. All with the engine's lock held; UCX calls back with it too.
#pragma once

#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/base/owned.h"
#include "src/base/status.h"
#include "transports/carrier.h"
#include "transports/ucx/frame.h"
#include "transports/ucx/library.h"

namespace tutti {

class UcxEngine;

class UcxEnd {
 public:
  // `token`: what the other end will say to be heard here.
  static Result<std::unique_ptr<UcxEnd>> make(UcxEngine& engine, std::uint64_t token);

  std::uint64_t token() const { return token_; }
  std::vector<std::byte> address() const;
  Status connect(std::span<const std::byte> address);

  UcxLanding land(std::uint32_t lane, const HalfLane& reading);
  void attach(std::uint32_t lane, const HalfLane& writing, const UcxLanding& landing);
  // Returns memory that the caller frees without the lock. Memory of a lane that UCX still reads into is returned
  // by a later call, or freed with the end.
  std::vector<LaneMemory> forget(std::uint32_t lane, LaneEnd which);

  Status put(const MessageHead& head, const std::byte* data);
  Result<bool> credit(std::uint32_t lane, std::uint64_t taken);
  // Reports messages that arrived and left since the last call.
  Status notify(CarrierEvents& events);
  // Nothing is kept in this process of what was put and credited.
  bool passed_on() const { return busy_ == 0 && !unpassed_ && !passing_; }

  // Descriptor for events of the worker and of this end.
  int descriptor() const { return both_.get(); }
  bool arm();

  // Called back.
  struct Data {
    void* at;
    std::size_t bytes;
    bool waits_there;  // Rendezvous: still with the sender, and `at` is a handle of it.
  };
  ucs_status_t take_message(const MessageHead& head, const Data& data);
  void take_word(const UcxWord& word);
  bool answer();  // False: not yet.

  // The other end has all that was put, or never will, and knows that this one leaves. Asks and tells it, if need be.
  bool may_part();
  void close();
  bool closed();

 private:
  static constexpr std::uint64_t kSlots = HalfLane::kSlots;
  using File = Owned<int, ::close, -1>;

  struct Writing;
  struct Sending {
    Writing* lane = nullptr;
    UcxMessage message;  // UCX reads it until it is sent.
    bool over = false;
  };
  struct Writing {
    UcxEnd* end = nullptr;
    std::uint32_t number = 0;
    LaneMemory memory;
    ucp_mem_h registered = nullptr;
    ucs_memory_type_t type = UCS_MEMORY_TYPE_HOST;
    bool on_device = false;     // Either end's slots are.
    std::uint64_t over = 0;     // Messages that UCX has sent, in order.
    std::uint64_t passing = 0;  // Number of messages that the current flush covers.
    std::uint64_t left = 0;     // And has.
    std::uint64_t credited = 0;
    bool has_over = false, has_left = false, has_credit = false;  // It is in the list of those.
    std::array<Sending, kSlots> sending;                          // By number.
  };
  struct Speech {
    UcxEnd* end = nullptr;
    UcxWord word;
    bool busy = false;
  };
  struct Reading;
  struct Arrival {
    enum class State : std::uint8_t { none, coming, there };
    Reading* lane = nullptr;
    MessageHead head;
    State state = State::none;
  };
  struct Reading {
    UcxEnd* end = nullptr;
    LaneMemory memory;
    LaneView view;
    ucp_mem_h registered = nullptr;
    ucs_memory_type_t type = UCS_MEMORY_TYPE_HOST;
    bool on_device = false;
    std::uint64_t next = 0;  // To be told of.
    bool has_notifications = false;
    bool forgotten = false;                // Later arrivals are dropped.
    std::array<Arrival, kSlots> arrivals;  // By number.
    Speech credit;
    bool busy() const;  // UCX will call back about it.
  };

  UcxEnd(UcxEngine& engine, std::uint64_t token) : engine_(engine), token_(token) {}
  void fail(const std::string& why);
  void ring();
  bool say(Speech& speech, UcxWord word);
  void pass_on();
  void passed(ucs_status_t status);
  void over(Sending& sending, ucs_status_t status);
  void come(Arrival& arrival, ucs_status_t status);
  ucs_status_t fetch(Arrival& arrival, const Data& data);

  UcxEngine& engine_;
  std::uint64_t token_, theirs_ = 0;
  ucp_ep_h endpoint_ = nullptr;
  void* closing_ = nullptr;  // UCX's request.
  std::string error_;
  std::map<std::uint32_t, Reading> reading_;
  std::map<std::uint32_t, Writing> writing_;
  // Forgotten, while UCX sends its last credit, or fetches a message: an end that is told that the other has closed the
  // lane cannot believe that all has come.
  std::vector<std::map<std::uint32_t, Reading>::node_type> fading_;
  std::uint32_t next_reading_ = 0, next_writing_ = 0;  // Below them, what is not there has been forgotten.
  std::vector<Reading*> arrived_;                      // Lanes with something to tell, each once.
  std::vector<Writing*> over_, left_, credited_;
  std::uint64_t busy_ = 0;  // Requests of UCX that will call back, but for the flush.
  bool unpassed_ = false;   // Something was sent since the last flush began,
  bool passing_ = false;    // which is under way.
  std::uint64_t count_put_ = 0, count_arrived_ = 0,
                count_received_ = 0;  // The last: of those put, known to have arrived.
  Speech question_, answer_, farewell_;
  bool asked_ = false, parts_ = false, alone_ = false;  // The other end has left.
  File bell_, both_;
  bool armed_ = false, rung_ = false;
};

}  // namespace tutti
