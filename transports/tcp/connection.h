// One end of a TCP connection between two ranks: carries the lanes between them, both ways, and notes, for all
// communicators that both are members of. Nothing here waits but wait() and the end.
//
// Where both ends have a carrier of one kind, messages and credits go by that; all else stays here.
#pragma once

#include <poll.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/socket.h"
#include "src/base/status.h"
#include "transports/carrier.h"
#include "transports/tcp/frame.h"
#include "transports/tcp/lane_table.h"
#include "transports/tcp/silence.h"
#include "transports/tcp/stream.h"

namespace tutti {

using Note = std::vector<std::byte>;

// Carrier that a connection may use for messages.
struct Carriage {
  std::unique_ptr<Carrier> carrier;  // Taken if the other end has one of its kind, and each reaches the other.
  bool insists = false;              // If not, the connection is lost; else it carries messages itself.
  std::string instead;               // Advice for a carrier that fails before it has carried a message.
};

// Any thread.
class TcpConnection : private CarrierEvents {
 public:
  // `socket`: connected. `odd`: of its two ends one says so. `route`: for messages, "10.0.0.1:40001 -> 10.0.0.2:4711".
  // `seal`: of what goes over the connection, not over a carrier.
  TcpConnection(Socket socket, bool odd, std::string route, Carriage carriage = {}, const Seal& seal = {});
  // Calls finish() for this connection alone, unless finish() was called before.
  ~TcpConnection();
  // Sends what is left, stops sending, and waits until each peer's system has acknowledged everything or has stopped as
  // well. Waits 3 s at most, for all connections together. Nothing may be sent over them afterwards.
  static void finish(std::span<TcpConnection* const> connections);

  // This end's half of a lane, made if it is not there yet; the one who writes tells the other. Valid until close().
  Result<LaneView> open(std::uint32_t context, const LaneSpec& spec, LaneEnd end);
  // This end's half if it is there: the other end may have told of a lane that nobody opens here.
  std::optional<LaneView> find(std::uint32_t context, const LaneSpec& spec);
  // Page-aligned memory that may be lent, and lending it: the halves that this end has of the communicator's lanes lie
  // there, whichever end is the first to know of them. Before any of them is opened, at either end.
  Result<LaneMemory> allocate(std::size_t bytes);
  void lend(std::uint32_t context, LaneBlock block);
  // Memory of a device that may be lent for slots, if the carrier reaches it: see there. Not, and why, where messages
  // go over TCP, or may yet.
  Result<ReachedBlock> reach(const DeviceBlock& block);
  // The lanes of a communicator that ends, and its notes; what is not drained() by then may be lost.
  void close(std::uint32_t context);
  // A number for a further communicator, which this end alone gives.
  std::uint32_t new_context();

  // At most kMaxNoteBytes. `passes`: a context that who takes the note has a part in from then on; where nobody takes
  // it, the other end closes that one itself. 0: none.
  void send(std::uint32_t context, std::span<const std::byte> note, std::uint32_t passes = 0);
  std::optional<Note> take(std::uint32_t context);
  bool has_notes() const {
    return waiting_notes_.load(std::memory_order_acquire) > 0;
  }  // True if there are notes of any context.

  // The same, taken or not.
  std::uint64_t notes_so_far() const { return notes_so_far_.load(std::memory_order_acquire); }

  // Carries what there is to carry. Beside another thread that does so, nothing.
  void advance();
  // The same after that one; and whether there was anything.
  bool advance_all();
  void push();  // Sends pending data as far as possible without waiting.
  // Whether all that was posted and sent by one communicator goes on by itself.
  bool drained(std::uint32_t context);
  // Also the credits that would have been told later.
  void send_credits();
  // Sleeps until there is something to carry, `timeout_ms` at most.
  void wait(int timeout_ms);
  // Fills in descriptors for poll(2). A lost connection has none. Returns false if there is something to do
  // already.
  static constexpr std::size_t kPolled = 2;
  bool prepare_wait(std::span<pollfd, kPolled> polled);

  bool lost() const { return lost_.load(std::memory_order_acquire); }
  // Checks, every 200 ms at most, whether the peer's host still acknowledges what is sent to it. If not, the connection
  // is lost.
  void look(std::int64_t now_ns);
  // Why it was lost, with its route.
  std::string reason();
  const std::string& route() const { return route_; }
  std::string interface_name() const;  // Name of this host's interface; empty if unknown.

 private:
  static constexpr std::size_t kMaxOutgoing = 64;
  static constexpr std::size_t kStagingBytes = 8192;

  // A header and its payload, on their way out.
  struct Outgoing {
    TcpFrameHeader header;
    const std::byte* data = nullptr;
    std::vector<std::byte> own;  // Where the data are not those of a slot.
    std::uint32_t context = 0;
  };
  struct WaitingNote {
    Note note;
    std::uint32_t passes = 0;
  };
  // Whether messages go by the carrier is open until both ends have said that they reach each other.
  enum class Way : std::uint8_t { open, tcp, carrier };

  // All with the lock held.
  void collect();
  bool overtakes(const Outgoing& reported);
  void notify(TcpFrameKind kind, std::uint32_t context, std::uint32_t lane, std::vector<std::byte> payload,
              std::uint64_t number = 0);
  static bool owes_credits(const HalfLane& reading);
  void deliver(HalfLane& lane, std::uint32_t bytes, std::uint32_t signature);
  bool has_unsent(std::uint32_t context) const;
  void put(TcpFrameHeader header, std::uint32_t context, const std::byte* data, std::vector<std::byte> own = {});
  bool send_some();
  bool flush();
  bool fails(int error);
  bool receive_some();
  Status parse();
  Status take_in(const TcpFrameHeader& header, const std::byte* payload);
  Status begin_message(const TcpFrameHeader& header);
  void end_message();
  Status accept_lane(const TcpFrameHeader& header, const std::byte* payload);
  Status accept_note(const TcpFrameHeader& header, const std::byte* payload);
  void end_context(std::uint32_t context);
  void lose(const std::string& why);
  void reset();
  bool finish_some();  // Takes the lock. Returns true once there is nothing left to wait for.
  void exchange();
  void reap_closed_lanes();

  // carrying.cc
  void introduce();
  Status meet_carrier(const TcpFrameHeader& header, const std::byte* payload);
  Status settle(bool other_reaches);
  void take_way(Way way);
  Status land(std::uint32_t number, HalfLane& reading);
  Status accept_landing(const TcpFrameHeader& header, const std::byte* payload);
  Status carry();
  std::string advised(const std::string& why) const;
  Status advance_carrier();
  Status arrived(const MessageHead& head) override;
  Status credited(std::uint32_t lane, std::uint64_t taken) override;
  void left(std::uint32_t lane, std::uint64_t messages) override;

  std::mutex mutex_;
  ByteStream stream_;
  std::string route_, reason_;
  std::atomic<bool> lost_ = false;
  std::atomic<std::uint64_t> waiting_notes_ = 0, notes_so_far_ = 0;
  std::uint32_t next_context_;
  std::int64_t looked_ns_ = 0;
  SilenceDetector silence_;
  bool stopped_ = false;     // finish() has shut down the sending side,
  bool finished_ = false;    // and has ended.
  std::uint64_t moves_ = 0;  // Counts every transfer in either direction, however many bytes it moved.

  bool insists_ = false;
  std::string instead_;
  bool carried_ = false;  // Something has come by the carrier: it works.
  Way way_ = Way::open;
  bool again_ = false;  // Received data may allow further messages to be sent.
  bool losing_ = false;
  std::optional<Status> broken_;       // Last error of the carrier, if its report is delayed.
  bool met_ = false;                   // The other end has introduced itself,
  bool reaches_ = false;               // and this one reaches it by the carrier.
  std::int64_t holding_since_ns_ = 0;  // Start of the wait for the carrier before the next note; 0: no wait.
  LaneTable lanes_;
  std::unique_ptr<Carrier> carrier_;  // The memory of lanes outlives it.
  std::map<std::uint32_t, std::deque<WaitingNote>> notes_;

  std::deque<Outgoing> unsent_;          // Lanes and notes: before messages.
  std::vector<Outgoing> outgoing_;       // From first_ on.
  std::size_t first_ = 0, written_ = 0;  // And how much of the first is written.

  std::array<std::byte, kStagingBytes> staging_;
  std::size_t begin_ = 0, end_ = 0;  // Range that has not been parsed.
  TcpFrameHeader arriving_;          // The message whose data are coming.
  HalfLane* into_ = nullptr;         // Its lane; null: none is coming, or it is dropped.
  std::byte* at_ = nullptr;          // Where its next byte goes.
  std::size_t missing_ = 0;          // Bytes of it.
};

}  // namespace tutti
