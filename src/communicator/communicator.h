// One rank's membership in a group of ranks: joins, plans, wires, runs calls, and fails as one.
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
class Mesh;
class DeviceCommunicator;
struct CallRecord;
struct UniqueId;

// Where the buffers of a communicator's calls lie.
enum class Memory : std::uint8_t { host, cuda };

// How numbers between two codes of a compression format are rounded. Each rank decides for itself.
struct AskedRounding {
  Rounding rounding = Rounding::nearest;
  std::uint64_t seed = 0;  // Seed of the random numbers.
};

struct CommunicatorOptions {
  std::string name;  // In messages.
  Memory memory = Memory::host;
  int device = -1;                    // Number of the GPU; -1: the current one of the calling thread.
  std::int64_t timeout_ms = 600'000;  // Longest wait of an operation; 0 or less: none.
  std::int64_t init_timeout_ms = 120'000;
  std::string transport;            // "shm": ranks must be on one host; any other: as if each were on its own.
  std::string algorithm, protocol;  // Forced where not empty.
  bool nccls_algorithm = false;     // NCCL_ALGO says so: without effect where it does not fit.
  bool nccls_protocol = false;      // NCCL_PROTO, likewise.
  std::string compression;          // How floats travel; "" or "raw": as they are.
  double max_relative_error = 0;    // Instead: as the tuner says, within this; 0: no such bound.
  AskedRounding compression_rounding;
  std::uint32_t channels = 0;            // 0: the tuner's choice.
  bool probes = true;                    // Links between hosts are measured when ranks join; on all ranks, or on none.
  std::string gpu;                       // The bus id of the device that the rank will be on; empty: of none.
  std::string tuner_plugin;              // As TUTTI_TUNER_PLUGIN: a name or a file; empty or "none": none.
  Tune tune = Tune::off;                 // Calls that try other algorithms.
  std::string tune_file;                 // Where rank 0 keeps what they came to; empty: nowhere.
  std::string version;                   // Version of the library, for that file.
  std::uint32_t forced = 0;              // Hash of what ranks must agree on; by force().
  Asked asked;                           // Names that were requested, for messages; set by force().
  const std::uint32_t* abort = nullptr;  // Watched by create() and shrink() alone: not 0 gives up.

  bool over_network() const { return !transport.empty() && transport != "shm"; }
  // With a plugin there is no autotuning, whether or not the plugin can be opened.
  bool has_plugin() const { return !tuner_plugin.empty() && tuner_plugin != "none"; }
  void force();
};

// Algorithm, protocol and format of the last collective. Empty names: it moved no data, or no messages.
struct Ran {
  const char* algorithm = "";
  const char* protocol = "";
  const char* compression = "raw";
  double error = 0;  // Relative, root mean square, expected of Gaussian numbers.
};

// A thread at a time, but for abort(), fail(), failure() and the getters.
class Communicator {
 public:
  // Blocks until all ranks have joined, or until the deadline.
  static Result<std::unique_ptr<Communicator>> create(const UniqueId& id, Rank rank, Rank ranks,
                                                      CommunicatorOptions options);
  // All ranks in this process, each to be used by a thread of its own or in a group.
  static Result<std::vector<std::unique_ptr<Communicator>>> create_all(Rank ranks, const CommunicatorOptions& options);
  // The same for ranks that play ranks of several hosts: between those, over loopback.
  static Result<std::vector<std::unique_ptr<Communicator>>> create_all(const Hosts& hosts,
                                                                       const CommunicatorOptions& options);
  virtual ~Communicator() = default;

  virtual Rank rank() const = 0;
  virtual Rank ranks() const = 0;
  virtual bool on_one_host() const = 0;
  // Connections to the other ranks; null: there are none.
  virtual const Mesh* mesh() const { return nullptr; }
  virtual const CommunicatorOptions& options() const = 0;
  virtual const Board& board() const = 0;
  // Numbers a collective that this rank makes, and shows it to the others.
  virtual void announce(CallRecord& record) = 0;
  // Microseconds that the tuner predicts for a collective, which is not made. Fails where it predicts none.
  virtual Result<double> predict_us(const Call& call, const CommunicatorOptions& options) = 0;
  // Tells ranks of other hosts, who do not see it, which collective this rank has announced last. Any thread.
  virtual void report_last_call() {}
  // The communicator itself if its buffers lie on a device: its calls are enqueued, see device/enqueue.h, and those of
  // the next two functions fail. Null: they lie in host memory.
  virtual DeviceCommunicator* on_device() { return nullptr; }

  // This rank's last collective; where it came through a stream, once that is done.
  virtual Ran last_run() const { return {}; }
  // Statistics of this rank's collectives so far, including internal ones for splits and autotuning. Any thread.
  virtual CompressionStatistics compression_statistics() const { return {}; }

  // Runs the call in the caller's thread. `options`: of the handle it came through; null: the communicator's own.
  virtual Status run(const Call& call, const CommunicatorOptions* options = nullptr) = 0;

  // The same, to be driven by the caller beside other operations. They start in the order of the calls.
  virtual Result<std::unique_ptr<Operation>> start(const Call& call, const CommunicatorOptions* options = nullptr) = 0;

  // Calls that come through streams run in the order in which they were made: take a ticket at the call, await it
  // before running, finish it after. Blocking calls take none while no ticket is out.
  virtual std::uint64_t take_ticket() = 0;
  virtual Status await_ticket(std::uint64_t ticket) = 0;
  virtual void finish_ticket() = 0;

  // Every rank calls it; null for a rank whose colour is negative.
  virtual Result<std::unique_ptr<Communicator>> split(int color, int key, const CommunicatorOptions& options) = 0;
  // A communicator of all ranks but these (sorted, each once, not this one), in the order of this one; only those that
  // stay call it. Changes nothing here, and works after a failure as well. An abort() that comes meanwhile ends it.
  virtual Result<std::unique_ptr<Communicator>> shrink(const std::vector<Rank>& excluded,
                                                       const CommunicatorOptions& options) = 0;

  // Gives memory to all other ranks of the host, each of which takes it; by no two threads, nor beside a call. The
  // second waits for it, as long as ranks wait for each other when they join.
  virtual Status pass(Rank to, int descriptor) = 0;
  virtual Result<File> take_passed(Rank from) = 0;

  // Both wait for this rank's calls in streams; after either, only destruction may follow. finalize() waits for all
  // peers to do one of the two, leave() for none: the peers finish the calls in which this rank has done its part, also
  // when it is destroyed by then.
  virtual Status finalize() = 0;
  virtual Status leave() = 0;
  // From any thread: ends every wait here and on the peers.
  virtual void abort() = 0;
  // From any thread, also beside a call, which it ends. Makes the failure known to all ranks; returns what all ranks
  // are told. The first is kept.
  virtual Status fail(Status status) = 0;
  // The same for calls of a group that will not be made: this rank fails for the reason, the others because of this
  // one.
  virtual Status call_off(const Status& reason) = 0;
  // After a failure: until no living peer is in the buffers of this rank's call any more, or for kRemoteAccessMs, which
  // all ranks of the communicator count from when the first of them waited. No other call of this thread may be under
  // way.
  virtual void wait_for_remote_access() = 0;
  // From any thread: what made it fail; looks whether a peer has died.
  virtual Status failure() = 0;
  // The same for who knows better when: "during all_reduce(...)".
  virtual Status failure(const std::string& /*when*/) { return failure(); }
};

}  // namespace tutti
