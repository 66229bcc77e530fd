// One end of a TCP connection between two ranks. It carries the lanes between them in both directions, and notes, for
// all communicators of which both ranks are members. Only wait(), finish() and the destructor block.
//
// If both ends have a carrier of the same kind, messages and credits use the carrier. All other data use TCP.
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

#include "src/base/clock.h"
#include "src/base/socket.h"
#include "src/base/status.h"
#include "transports/carrier.h"
#include "transports/tcp/frame.h"
#include "transports/tcp/lane_table.h"
#include "transports/tcp/silence.h"
#include "transports/tcp/stream.h"

namespace tutti {

using Note = std::vector<std::byte>;  // A control note.

// Carrier that a connection may use for messages.
struct CarrierOptions {
  // Used if the other end has a carrier of the same kind and each end reaches the other.
  std::unique_ptr<Carrier> carrier;
  bool required = false;  // True: without the carrier the connection is lost. False: messages use TCP then.
  std::string instead;    // Advice for the error message if the carrier fails before it has received a message.
};

// All functions are thread-safe.
class TcpConnection : private CarrierEvents {
 public:
  // `socket`: connected. `odd`: true at exactly one of the two ends. `route`: for error messages, as in "10.0.0.1:40001
  // -> 10.0.0.2:4711". `seal`: protection of the TCP data; it does not cover the carrier.
  TcpConnection(Socket socket, bool odd, std::string route, CarrierOptions carrier_options = {}, const Seal& seal = {});
  // Calls finish() for this connection alone, unless finish() was called before.
  ~TcpConnection();
  // Sends pending data, shuts down the sending side, and waits until the kernels of all peers have acknowledged all
  // data. Stops waiting for lost connections. Waits at most 3 s in total. The connections cannot send afterwards.
  static void finish(std::span<TcpConnection* const> connections);

  // Returns this end's half of a lane and creates it if necessary. The writer announces the lane to the other end. The
  // view is valid until close().
  Result<LaneView> open(std::uint32_t context, const LaneSpec& spec, LaneEnd end);
  // Returns this end's half if it exists. A lane that the other end has announced exists before open().
  std::optional<LaneView> find(std::uint32_t context, const LaneSpec& spec);
  // allocate() returns page-aligned memory for attach_memory(). attach_memory() places this end's halves of the
  // communicator's lanes in `region`. Call attach_memory() before either end opens one of these lanes.
  Result<LaneMemory> allocate(std::size_t bytes);
  void attach_memory(std::uint32_t context, LaneRegion region);
  // Registers device memory with the carrier, so that it may hold slots; see Carrier::register_device_memory(). Fails
  // if messages use TCP, or if the data path is not chosen yet and the carrier is optional.
  Result<RegisteredRegion> register_device_memory(const DeviceRegion& region);
  // See Carrier::supports_ll(). False without a carrier.
  bool supports_ll();
  // Ends a communicator at this end: removes its lanes and unread notes. Messages and notes that are not drained() may
  // be lost.
  void close(std::uint32_t context);
  // Returns a context number for another communicator. The other end never returns the same number.
  std::uint32_t new_context();

  // Sends a note of at most kMaxNoteBytes. `passes`: a context that the taker of the note joins; 0: none. If the note
  // is never taken, the other end closes this context itself.
  void send(std::uint32_t context, std::span<const std::byte> note, std::uint32_t passes = 0);
  std::optional<Note> take(std::uint32_t context);
  // Returns true if notes of any context wait for take().
  bool has_notes() const { return waiting_notes_.load(std::memory_order_acquire) > 0; }

  // Returns the number of notes received so far in all contexts, including those taken.
  std::uint64_t notes_so_far() const { return notes_so_far_.load(std::memory_order_acquire); }

  // Sends and receives without blocking. Does nothing while another thread uses the connection. Returns true if any
  // data moved.
  bool advance();
  // Like advance(), but waits for the lock of a concurrent call first.
  bool advance_all();
  void push();  // Sends pending data without blocking. Does nothing while another thread uses the connection.
  // Returns true if all messages and notes of one communicator proceed without further calls, or the connection is
  // lost.
  bool drained(std::uint32_t context);
  // Like advance_all(), but also sends credits that would otherwise be batched with later ones.
  void send_credits();
  // Sleeps until data arrive or can be sent, at most `timeout_ms`.
  void wait(int timeout_ms);
  // Fills in descriptors for poll(2). The descriptors of a lost connection are -1. Returns false if the carrier has
  // events already, so that the caller must not sleep.
  static constexpr std::size_t kPolled = 2;
  bool prepare_wait(std::span<pollfd, kPolled> polled);

  bool lost() const { return lost_.load(std::memory_order_acquire); }
  // Checks, at most every 200 ms, that the peer's host still acknowledges data. Otherwise marks the connection as lost.
  void check_liveness(std::int64_t now_ns);
  // Returns the error that ended the connection, with the route.
  std::string reason();
  const std::string& route() const { return route_; }
  const Socket& socket() const { return stream_.socket(); }  // For its addresses only.

 private:
  static constexpr std::size_t kMaxOutgoing = 64;
  static constexpr std::size_t kStagingBytes = 8192;

  // Header and payload of a frame to send.
  struct Outgoing {
    TcpFrameHeader header;
    const std::byte* data = nullptr;
    std::vector<std::byte> own;  // Payload that does not lie in a slot.
    std::uint32_t context = 0;
  };
  struct WaitingNote {
    Note note;
    std::uint32_t passes = 0;
  };
  // Data path of messages. It is open until both ends have reported whether they reach each other by the carrier.
  enum class DataPath : std::uint8_t { open, tcp, carrier };

  // The caller holds the lock.
  void collect();
  bool overtakes(const Outgoing& frame);
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
  Status handle_frame(const TcpFrameHeader& header, const std::byte* payload);
  Status begin_message(const TcpFrameHeader& header);
  void end_message();
  Status accept_lane(const TcpFrameHeader& header, const std::byte* payload);
  Status accept_note(const TcpFrameHeader& header, const std::byte* payload);
  void end_context(std::uint32_t context);
  // True once the connection sends and receives nothing more by TCP. It is lost as soon as the carrier has delivered
  // its last messages.
  bool has_ended() const { return lost() || last_messages_by_.has_value(); }
  void end_connection(const std::string& why);
  void finish_ending();
  void reset();
  bool exchange_and_compare();
  // Takes the lock. Returns true once there is nothing to wait for. Otherwise fills in the descriptor for poll(2).
  bool finish_some(pollfd& polled);
  void exchange();
  void reap_closed_lanes();

  // Functions of the carrier.
  void send_carrier_offer();
  Status handle_carrier_offer(const TcpFrameHeader& header, const std::byte* payload);
  Status choose_data_path(bool other_reaches);
  void set_data_path(DataPath data_path);
  Status register_reader(std::uint32_t number, HalfLane& reading);
  Status accept_landing(const TcpFrameHeader& header, const std::byte* payload);
  Status move_by_carrier();
  std::string advised(const std::string& why) const;
  Status advance_carrier();
  bool finish_carrier();
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
  bool stopped_ = false;     // finish() has shut down the sending side.
  bool finished_ = false;    // finish() has returned.
  std::uint64_t moves_ = 0;  // Number of transfers in both directions, whatever their size.

  bool requires_carrier_ = false;
  std::string instead_;
  bool carried_ = false;  // A message or credit has arrived by the carrier, so the carrier works.
  DataPath data_path_ = DataPath::open;
  bool again_ = false;                        // Received data may allow further messages to be sent.
  std::optional<Deadline> last_messages_by_;  // Deadline for the last messages of the carrier, once ended.
  std::optional<Status> broken_;              // Last error of the carrier, if its report is delayed.
  bool met_ = false;                          // The other end has sent its first frame, which offers a carrier or none.
  bool reaches_ = false;                      // This end reaches the other end by the carrier.
  std::int64_t holding_since_ns_ = 0;         // Start of the wait for the carrier before the next note; 0: no wait.
  LaneTable lanes_;
  std::unique_ptr<Carrier> carrier_;  // The memory of lanes outlives it.
  std::map<std::uint32_t, std::deque<WaitingNote>> notes_;

  std::deque<Outgoing> unsent_;          // Lane announcements and notes. Sent before messages.
  std::vector<Outgoing> outgoing_;       // Frames being sent, from index first_ on.
  std::size_t first_ = 0, written_ = 0;  // written_: bytes of frame first_ that are sent.

  std::array<std::byte, kStagingBytes> staging_;
  std::size_t begin_ = 0, end_ = 0;  // Range that has not been parsed.
  TcpFrameHeader arriving_;          // Header of the message whose data are arriving.
  HalfLane* into_ = nullptr;         // Lane of this message. Null: no message is arriving, or it is dropped.
  std::byte* at_ = nullptr;          // Destination of its next byte.
  std::size_t missing_ = 0;          // Bytes that it still lacks.
};

}  // namespace tutti
