// One rank's membership in a group of ranks. It joins, runs calls, fails and ends together with the other ranks. Its
// backends run the calls.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/communicator/call/backend.h"
#include "src/communicator/call/hosts.h"
#include "src/communicator/call/options.h"
#include "transports/shm/segment.h"

namespace tutti {

class Board;
class CarrierSource;
class MessageEndpoint;
class Mesh;
class TaggedMessages;
enum class RejectedCall : std::uint32_t;
struct ControlPlane;
struct UniqueId;

// Not thread-safe, except abort(), fail(), failure(), report_rejection(), messages() and the getters.
class Communicator final {
 public:
  // Blocks until all ranks have joined. Fails at the deadline.
  static Result<std::unique_ptr<Communicator>> create(const UniqueId& id, Rank rank, Rank ranks,
                                                      CommunicatorOptions options);
  // Creates all ranks in this process. Each is used by its own thread, or in a group.
  static Result<std::vector<std::unique_ptr<Communicator>>> create_all(Rank ranks, const CommunicatorOptions& options);
  // Creates all ranks in this process as ranks of several hosts. Hosts communicate over loopback, and by `carriers` or,
  // if null, those of the transport in `options`.
  static Result<std::vector<std::unique_ptr<Communicator>>> create_all(const Hosts& hosts,
                                                                       const CommunicatorOptions& options,
                                                                       CarrierSource* carriers = nullptr);
  // Creates a rank that has joined. Its calls use host memory, or `host` instead if that is not null.
  explicit Communicator(std::shared_ptr<ControlPlane> control, std::unique_ptr<BlockingBackend> host = nullptr);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  Rank rank() const { return rank_; }
  Rank ranks() const { return ranks_; }
  bool on_one_host() const;
  const CommunicatorOptions& options() const { return options_; }
  const Mesh& mesh() const;  // Connections to the other ranks.
  const Board& board() const;
  // State that backends share with this object, and may keep for longer.
  const std::shared_ptr<ControlPlane>& control() const { return control_; }

  // Further calls use buffers on this device. Internal exchanges continue to use host memory.
  void use_device(std::unique_ptr<Backend> device);
  // Returns the backend of the device; null if buffers lie in host memory.
  DeviceBackend* on_device() const { return calls_->on_device(); }

  // Runs a call on host memory in the caller's thread. `options` are those of the handle; null: the communicator's own.
  Status run(const Call& call, const CommunicatorOptions* options = nullptr) {
    return host_->run(call, options == nullptr ? options_ : *options);
  }
  // Starts a call on host memory. See BlockingBackend.
  Result<std::unique_ptr<Operation>> start(const Call& call, const CommunicatorOptions* options = nullptr) {
    return host_->start(call, options == nullptr ? options_ : *options);
  }
  // See Backend.
  Result<double> predict_us(const Call& call, const CommunicatorOptions& options) {
    return calls_->predict_us(call, options);
  }
  LastRun last_run() const { return calls_->last_run(); }
  CompressionStatistics compression_statistics() const { return calls_->compression_statistics(); }
  void wait_for_remote_access() { calls_->wait_for_remote_access(); }
  Status failure() { return calls_->failure(); }

  // Calls in streams run in the order in which they were made. A call takes a ticket, awaits it before it runs, and
  // finishes it afterwards. Blocking calls take no ticket while no other ticket is outstanding.
  std::uint64_t take_ticket() { return tickets_.fetch_add(1); }
  void await_ticket(std::uint64_t ticket) const;
  void finish_ticket();

  // Returns this rank's end of messages with tags, whose buffers lie in host memory.
  Result<std::shared_ptr<MessageEndpoint>> messages();

  // Collective. Returns null on a rank with negative color.
  Result<std::unique_ptr<Communicator>> split(int color, int key, const CommunicatorOptions& options);
  // Returns a communicator of all ranks except `excluded` (sorted, unique, without this rank), in the order of this
  // one. Only remaining ranks call it. Does not change this communicator, and works after a failure too. abort() ends
  // it.
  Result<std::unique_ptr<Communicator>> shrink(const std::vector<Rank>& excluded, const CommunicatorOptions& options);

  // pass() sends memory to a rank of the same host; take_passed() receives it. Not concurrent with a call.
  // take_passed() waits at most as long as ranks wait when they join.
  Status pass(Rank to, int descriptor);
  Result<File> take_passed(Rank from);

  // finalize() and leave() wait for this rank's calls in streams. Afterwards the communicator may only be destroyed.
  // finalize() waits until every peer has called finalize() or leave(). leave() waits for no peer. Peers can finish
  // calls that this rank has completed, even if this rank has been destroyed.
  Status finalize();
  Status leave();
  // Ends every wait of this rank and of its peers.
  void abort();
  // Fails the communicator on all ranks, and ends running calls. Returns the error that all ranks report; the first
  // error wins.
  Status fail(Status status);
  // Like fail(), for calls of a group that will not be made. This rank reports `reason`; the other ranks report this
  // rank.
  Status call_off(const Status& reason);
  // Shows to the peers, which may wait for the call, that a call of this rank is invalid. `text`: function and reason.
  void report_rejection(RejectedCall call, const std::string& text);

 private:
  // Returns the members of this rank's sub-communicator, in its order; empty if color is negative.
  Result<std::vector<Rank>> agree_on_members(int color, int key);
  // Lets `child` use the same memory as this communicator.
  Result<std::unique_ptr<Communicator>> extended(Result<std::unique_ptr<Communicator>> child);
  Result<std::unique_ptr<Communicator>> split_on_host(int color, int key, const CommunicatorOptions& options);
  Result<std::unique_ptr<Communicator>> shrink_on_host(const std::vector<Rank>& excluded,
                                                       const CommunicatorOptions& options);

  const std::shared_ptr<ControlPlane> control_;
  const CommunicatorOptions& options_;
  const Rank rank_, ranks_;
  std::unique_ptr<BlockingBackend> host_;
  std::unique_ptr<Backend> device_;  // Null: buffers lie in host memory.
  Backend* calls_;                   // The backend of the caller's buffers.
  std::unique_ptr<TaggedMessages> tagged_messages_;
  std::uint32_t aborted_ = 0;              // 1: abort() was called since the last shrink() began.
  std::atomic<std::uint64_t> tickets_{0};  // Number of calls in streams so far; `served_` is the number that are done.
  std::atomic<std::uint64_t> served_{0};
};

}  // namespace tutti
