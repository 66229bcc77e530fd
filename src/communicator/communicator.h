// One rank's membership in a group of ranks. It joins, plans, connects, runs calls and fails together with the other
// ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/config.h"
#include "src/base/status.h"
#include "src/communicator/call.h"
#include "src/communicator/compression_counter.h"
#include "src/communicator/forced.h"
#include "src/communicator/hosts.h"
#include "src/communicator/operation.h"
#include "src/compression/format.h"
#include "transports/shm/segment.h"

namespace tutti {

class Board;
class MessageEndpoint;
class Mesh;
class DeviceCommunicator;
struct CallRecord;
struct UniqueId;

// The memory that holds the buffers of a communicator's calls.
enum class Memory : std::uint8_t { host, cuda };

// Rounding of numbers between two codes of a compression format. Ranks may differ in it.
struct RequestedRounding {
  Rounding rounding = Rounding::nearest;
  std::uint64_t seed = 0;  // Seed of the random numbers.
};

struct CommunicatorOptions {
  std::string name;  // Used in messages.
  Memory memory = Memory::host;
  int device = -1;                    // For cuda: the device; -1: the current device of the calling thread.
  std::int64_t timeout_ms = 600'000;  // Maximum wait of an operation; 0 or less: no limit.
  std::int64_t init_timeout_ms = 120'000;
  std::string transport;            // "shm": all ranks must be on one host. Any other: each rank counts as a host.
  std::string algorithm, protocol;  // Forced if not empty.
  bool nccls_algorithm = false;     // The algorithm comes from NCCL_ALGO, which is ignored if it does not apply.
  bool nccls_protocol = false;      // The protocol comes from NCCL_PROTO, which is ignored if it does not apply.
  std::string compression;          // Compression of floats; "" or "raw": none.
  double max_relative_error = 0;  // Replaces `compression`: the tuner chooses a format within this error; 0: no bound.
  RequestedRounding compression_rounding;
  std::uint32_t channels = 0;      // 0: the tuner chooses.
  std::uint32_t min_channels = 0;  // Bounds of the tuner's choice on devices; 0: none.
  std::uint32_t max_channels = 0;
  bool probes = true;                    // Measure links between hosts when ranks join. Must match on all ranks.
  std::string gpu;                       // PCI bus id of the rank's device; empty: no device.
  std::string tuner_plugin;              // Name or file, as in TUTTI_TUNER_PLUGIN; empty or "none": no plugin.
  Tune tune = Tune::off;                 // Autotuning.
  std::string tune_file;                 // File in which rank 0 saves autotuning results; empty: not saved.
  WaitMode wait = WaitMode::automatic;   // How this rank waits for its peers.
  std::string version;                   // Version of the library, stored in the tune file.
  std::uint32_t forced = 0;              // Hash of the options on which ranks must agree; set by force().
  Requested requested;                   // Names among these options, for error messages; set by force().
  const std::uint32_t* abort = nullptr;  // Polled only by create() and shrink(): a nonzero value makes them give up.

  bool over_network() const { return !transport.empty() && transport != "shm"; }
  // A plugin overrides autotuning, so autotuning is off if one is set, even if it cannot be opened.
  bool has_plugin() const { return !tuner_plugin.empty() && tuner_plugin != "none"; }
  void force();
};

// Algorithm, protocol and format of a collective; empty names if it moved no messages.
struct LastRun {
  const char* algorithm = "";
  const char* protocol = "";
  const char* compression = "raw";
  double error = 0;  // Expected relative root mean square error for Gaussian numbers.
};

// Not thread-safe, except abort(), fail(), failure() and the getters.
class Communicator {
 public:
  // Blocks until all ranks have joined. Fails at the deadline.
  static Result<std::unique_ptr<Communicator>> create(const UniqueId& id, Rank rank, Rank ranks,
                                                      CommunicatorOptions options);
  // Creates all ranks in this process. Each is used by its own thread, or in a group.
  static Result<std::vector<std::unique_ptr<Communicator>>> create_all(Rank ranks, const CommunicatorOptions& options);
  // Creates all ranks in this process as ranks of several hosts. Hosts communicate over loopback.
  static Result<std::vector<std::unique_ptr<Communicator>>> create_all(const Hosts& hosts,
                                                                       const CommunicatorOptions& options);
  virtual ~Communicator() = default;

  virtual Rank rank() const = 0;
  virtual Rank ranks() const = 0;
  virtual bool on_one_host() const = 0;
  // Returns the control connections to the other ranks; null if there are none.
  virtual const Mesh* mesh() const { return nullptr; }
  virtual const CommunicatorOptions& options() const = 0;
  virtual const Board& board() const = 0;
  // Assigns a number to a collective of this rank, and shows the collective to the other ranks.
  virtual void announce(CallRecord& record) = 0;
  // Returns the time in microseconds that the tuner predicts for a collective, without running it. Fails if there is no
  // prediction.
  virtual Result<double> predict_us(const Call& call, const CommunicatorOptions& options) = 0;
  // Reports the last announced collective to ranks of other hosts, which do not see the board. Thread-safe.
  virtual void report_last_call() {}
  // Returns this communicator if its buffers lie on a device. Its calls are then enqueued (see device/enqueue.h), and
  // run() and start() fail. Returns null if buffers lie in host memory.
  virtual DeviceCommunicator* on_device() { return nullptr; }

  // Returns how this rank's last collective ran. For a call in a stream, valid after the call has completed.
  virtual LastRun last_run() const { return {}; }
  // Returns statistics of this rank's collectives so far, including internal ones for split and autotuning.
  // Thread-safe.
  virtual CompressionStatistics compression_statistics() const { return {}; }

  // Runs the call in the caller's thread. `options` are those of the handle; null: the communicator's own.
  virtual Status run(const Call& call, const CommunicatorOptions* options = nullptr) = 0;

  // Starts the call; the caller drives it beside other operations. Operations start in the order of the calls.
  virtual Result<std::unique_ptr<Operation>> start(const Call& call, const CommunicatorOptions* options = nullptr) = 0;

  // Calls in streams run in the order in which they were made. A call takes a ticket, awaits it before it runs, and
  // finishes it afterwards. Blocking calls take no ticket while no other ticket is outstanding.
  virtual std::uint64_t take_ticket() = 0;
  virtual Status await_ticket(std::uint64_t ticket) = 0;
  virtual void finish_ticket() = 0;

  // Collective. Returns null on a rank with negative color.
  virtual Result<std::unique_ptr<Communicator>> split(int color, int key, const CommunicatorOptions& options) = 0;
  // Returns a communicator of all ranks except `excluded` (sorted, unique, without this rank), in the order of this
  // one. Only remaining ranks call it. Does not change this communicator, and works after a failure too. abort() ends
  // it.
  virtual Result<std::unique_ptr<Communicator>> shrink(const std::vector<Rank>& excluded,
                                                       const CommunicatorOptions& options) = 0;

  // Returns this rank's end of messages with tags. Thread-safe. Fails if buffers lie in device memory.
  virtual Result<std::shared_ptr<MessageEndpoint>> messages() {
    return unsupported(
        "messages with tags need a communicator on host memory: use tutti_send and tutti_recv on one on a GPU");
  }

  // pass() sends memory to a rank of the same host; take_passed() receives it. Not thread-safe, and not concurrent with
  // a call. take_passed() waits at most as long as ranks wait when they join.
  virtual Status pass(Rank to, int descriptor) = 0;
  virtual Result<File> take_passed(Rank from) = 0;

  // finalize() and leave() wait for this rank's calls in streams. Afterwards the communicator may only be destroyed.
  // finalize() waits until every peer has called finalize() or leave(). leave() waits for no peer. Peers can finish
  // calls that this rank has completed, even if this rank has been destroyed.
  virtual Status finalize() = 0;
  virtual Status leave() = 0;
  // Ends every wait of this rank and of its peers. Thread-safe.
  virtual void abort() = 0;
  // Fails the communicator on all ranks, and ends running calls. Returns the error that all ranks report; the first
  // error wins. Thread-safe.
  virtual Status fail(Status status) = 0;
  // Like fail(), for calls of a group that will not be made. This rank reports `reason`; the other ranks report this
  // rank.
  virtual Status call_off(const Status& reason) = 0;
  // After a failure, waits until no living peer accesses the buffers of this rank's call, for at most kRemoteAccessMs.
  // All ranks of the communicator count this time from the first wait. This thread must have no other call in progress.
  virtual void wait_for_remote_access() = 0;
  // Returns the error of the communicator. Also checks whether a peer has died. Thread-safe.
  virtual Status failure() = 0;
  // Like failure(), with the caller's description of the time: "during all_reduce(...)".
  virtual Status failure(const std::string& /*when*/) { return failure(); }
};

}  // namespace tutti
