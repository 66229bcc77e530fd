// One end of a UCX connection between two ranks: an endpoint, and the state of the lanes of one TCP connection. All
// functions require the engine's lock, which is also held during callbacks of UCX.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/base/file.h"
#include "src/base/status.h"
#include "transports/carrier.h"
#include "transports/ucx/frame.h"
#include "transports/ucx/library.h"

namespace tutti {

class UcxEngine;

class UcxEnd {
 public:
  // `token`: random number that the other end puts into its messages.
  static Result<std::unique_ptr<UcxEnd>> make(UcxEngine& engine, std::uint64_t token);

  std::uint64_t token() const { return token_; }
  std::vector<std::byte> address() const;
  Status connect(std::span<const std::byte> address);

  UcxLanding register_reader(std::uint32_t lane, const HalfLane& reading);
  void attach(std::uint32_t lane, const HalfLane& writing, const UcxLanding& landing);
  // Returns memory that the caller frees without the lock. Memory of a lane that UCX still reads into is returned
  // by a later call, or freed with the end.
  std::vector<LaneMemory> forget(std::uint32_t lane, LaneEnd which);

  Status put(const MessageHead& head, const std::byte* data);
  Result<bool> credit(std::uint32_t lane, std::uint64_t taken);
  // Reports messages that arrived and left since the last call.
  Status notify(CarrierEvents& events);
  // True if UCX buffers nothing in this process of what was put and credited.
  bool flushed() const { return busy_ == 0 && !unpassed_ && !passing_; }

  // Descriptor for events of the worker and of this end.
  int descriptor() const { return epoll_.get(); }
  bool arm();

  // Called by UCX's callbacks.
  struct Data {
    void* at;
    std::size_t bytes;
    bool is_rendezvous;  // Rendezvous: the sender keeps the data, and `at` is UCX's handle.
  };
  ucs_status_t receive_message(const MessageHead& head, const Data& data);
  void receive_control(const UcxControl& word);
  bool send_pong();  // Sends an owed answer. Returns false if it must be retried.

  // True if the other end has received everything, or never will, and knows that this end leaves. Exchanges the words
  // that are needed for that.
  bool can_close();
  void close();
  bool closed();

 private:
  static constexpr std::uint64_t kSlots = HalfLane::kSlots;

  struct Writing;
  struct Sending {
    Writing* lane = nullptr;
    UcxMessage message;  // UCX reads it until the send completes.
    // The send is complete.
    bool over = false;
  };
  struct Writing {
    UcxEnd* end = nullptr;
    std::uint32_t number = 0;
    LaneMemory memory;
    ucp_mem_h registered = nullptr;
    ucs_memory_type_t type = UCS_MEMORY_TYPE_HOST;
    bool on_device = false;     // The slots of either end are in device memory.
    std::uint64_t over = 0;     // Messages that UCX has sent, counted in order.
    std::uint64_t passing = 0;  // Number of messages that the current flush covers.
    std::uint64_t left = 0;     // Messages whose slots are free again.
    std::uint64_t credited = 0;
    bool has_over = false, has_left = false, has_credit = false;  // Member of the list of that name.
    std::array<Sending, kSlots> sending;                          // [k % kSlots]: message k.
  };
  struct ControlSend {
    UcxEnd* end = nullptr;
    UcxControl word;
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
    std::uint64_t next = 0;  // Next message to report.
    bool has_notifications = false;
    bool forgotten = false;                // Later arrivals are dropped.
    std::array<Arrival, kSlots> arrivals;  // [k % kSlots]: message k.
    ControlSend credit;
    bool busy() const;  // True if a callback for this lane is pending.
  };

  UcxEnd(UcxEngine& engine, std::uint64_t token) : engine_(engine), token_(token) {}
  void fail(const std::string& why);
  void signal_event();
  bool send_control(ControlSend& send, UcxControl word);
  void pass_on();
  void passed(ucs_status_t status);
  void over(Sending& sending, ucs_status_t status);
  void complete_arrival(Arrival& arrival, ucs_status_t status);
  ucs_status_t fetch(Arrival& arrival, const Data& data);

  UcxEngine& engine_;
  std::uint64_t token_, peer_token_ = 0;
  ucp_ep_h endpoint_ = nullptr;
  void* close_request_ = nullptr;  // Request of UCX.
  std::string error_;
  std::map<std::uint32_t, Reading> reading_;
  std::map<std::uint32_t, Writing> writing_;
  // Forgotten lanes while UCX sends their last credit or fetches a message. Their memory must outlive these requests,
  // and count_arrived_ must still include their messages.
  std::vector<std::map<std::uint32_t, Reading>::node_type> closing_lanes_;
  // Lanes below these numbers that are not in the maps were forgotten.
  std::uint32_t next_reading_ = 0, next_writing_ = 0;
  std::vector<Reading*> arrived_;  // Lanes with arrivals to report, each once.
  std::vector<Writing*> over_, left_, credited_;
  std::uint64_t busy_ = 0;  // Pending requests of UCX, without the flush.
  bool unpassed_ = false;   // Data was sent since the last flush began.
  bool passing_ = false;    // A flush is in progress.
  // count_received_: sent messages that are known to have arrived.
  std::uint64_t count_put_ = 0, count_arrived_ = 0, count_received_ = 0;
  ControlSend ping_, pong_, goodbye_;
  bool requested_ = false, closing_ = false, peer_closed_ = false;  // peer_closed_: the other end has left.
  File own_event_, epoll_;
  bool armed_ = false, signalled_ = false;
};

}  // namespace tutti
