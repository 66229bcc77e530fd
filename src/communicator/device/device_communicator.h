// A rank whose buffers are in device memory. Calls are enqueued in the caller's streams, where thread blocks of the
// device run their plans. Joining, splitting, failure handling and shutdown use the contained communicator on host
// memory (control_). Member functions are in create.cc, choice.cc, autotune.cc, prepare.cc, compression.cc,
// rounding.cc, in_windows.cc, messages.cc, streams.cc, network.cc and failing.cc; enqueue.cc puts their jobs into
// streams.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/communicator/communicator.h"
#include "src/communicator/device/autotuning.h"
#include "src/communicator/device/rounding_chunks.h"
#include "src/communicator/device/windows.h"
#include "src/communicator/peers/links.h"
#include "src/communicator/planning/advice.h"
#include "src/communicator/planning/planning.h"
#include "src/communicator/planning/rings.h"
#include "src/executor/compiled_plan.h"
#include "src/executor/thread_block/batch.h"
#include "src/executor/thread_block/correct.h"

namespace tutti {

class Proxy;
class Turns;
struct DeviceLaunch;

// Device work of one call: a copy, or rounding of an input with its residual, then a launch. Each is optional.
struct DeviceJob {
  std::byte* copy_to = nullptr;  // Null: no copy.
  const std::byte* copy_from = nullptr;
  std::size_t copy_bytes = 0;
  CorrectTask correct;  // Without a format: no rounding.
  bool launches = false;
  BatchCall entry;
  std::uint32_t thread_block_bytes = 0;
};

// Slots by which loops may run ahead, for every protocol.
inline constexpr std::uint32_t kSlotsAhead = 4;
// Units are cut at multiples of this many bytes: a cache line of a device.
inline constexpr std::uint32_t kPackGranule = 128;
// Capacity of a slot for data, in bytes.
std::uint32_t slot_data(const SlotSizes& slots, Protocol protocol);

// Fails unless the call's buffers are aligned to an element, as devices require.
Status check_alignment(const Call& call);

class DeviceCommunicator final : public Communicator {
 public:
  // Collective: moves `members` from host memory to `device`; blocks until all ranks have done so. Several members must
  // all belong to this process and be driven by this thread.
  static Result<std::vector<std::unique_ptr<Communicator>>> make(std::vector<std::unique_ptr<Communicator>> members,
                                                                 const std::shared_ptr<Device>& device);
  ~DeviceCommunicator() override;

  Rank rank() const override { return rank_; }
  Rank ranks() const override { return ranks_; }
  bool on_one_host() const override { return control_->on_one_host(); }
  const Mesh* mesh() const override { return control_->mesh(); }
  const CommunicatorOptions& options() const override { return control_->options(); }
  CompressionStatistics compression_statistics() const override {
    return compression_counter_.of(board().last(rank()));
  }
  const Board& board() const override { return control_->board(); }
  void announce(CallRecord& record) override { control_->announce(record); }
  Result<double> predict_us(const Call& call, const CommunicatorOptions& options) override;
  DeviceCommunicator* on_device() override { return this; }
  LastRun last_run() const override {
    const LastRun* ran = last_run_.load(std::memory_order_acquire);
    return ran == nullptr ? LastRun{} : *ran;
  }

  Status run(const Call& call, const CommunicatorOptions* options) override;
  Result<std::unique_ptr<Operation>> start(const Call& call, const CommunicatorOptions* options) override;
  std::uint64_t take_ticket() override { return control_->take_ticket(); }
  Status await_ticket(std::uint64_t ticket) override { return control_->await_ticket(ticket); }
  void finish_ticket() override { control_->finish_ticket(); }
  Result<std::unique_ptr<Communicator>> split(int color, int key, const CommunicatorOptions& options) override;
  Result<std::unique_ptr<Communicator>> shrink(const std::vector<Rank>& excluded,
                                               const CommunicatorOptions& options) override;
  Status pass(Rank to, int descriptor) override { return control_->pass(to, descriptor); }
  Result<File> take_passed(Rank from) override { return control_->take_passed(from); }
  Status finalize() override;
  Status leave() override;
  void abort() override { control_->abort(); }
  Status fail(Status status) override { return control_->fail(std::move(status)); }
  Status call_off(const Status& reason) override { return control_->call_off(reason); }
  void wait_for_remote_access() override;
  using Communicator::failure;
  Status failure() override;

  // Waits for enqueued calls, excluding replays of graphs, and returns failure(). After a failure, also waits until
  // thread blocks have left this rank's memory, like wait_for_remote_access().
  Status await_own_calls();

  // Registers memory that peers may access, see windows.h. No call may use a window once it is withdrawn. After a
  // failure, opened windows stay open until the communicator ends.
  Result<WindowHandle> show_window(const WindowBuffer& own);
  bool has_window(WindowHandle window) const { return windows_.knows(window); }
  Status withdraw_window(WindowHandle window);
  // Number of collectives so far whose plans access peers' memory directly.
  std::uint64_t mapped_calls() const { return mapped_calls_; }

  // Number of polls of the proxy; 0 without a proxy.
  std::uint64_t proxy_rounds() const;

  Device& device() const { return home().device(); }
  const PeerSet& peers() const { return peers_; }
  std::size_t device_bytes() const { return home().bytes(); }  // Device memory allocated so far.

  // ---- For enqueue.cc, which uses these functions in call order. ----
  bool has_failed() const;  // Without asking peers; failure() returns the reason.
  // Does everything for a call that can fail or allocate memory, before peers see any call of its group. `roundings`
  // counts the communicator's calls in the group so far that need a rounding chunk.
  Status get_ready(const Call& call, const CommunicatorOptions& options, std::size_t& roundings);
  // Undoes get_ready() for all calls that were not made.
  void forget_ready();
  Result<DeviceJob> collective(const Call& call, const CommunicatorOptions& options);
  Result<DeviceJob> message(const Call& call, const CommunicatorOptions& options);
  std::uint32_t message_channels(const Call& call) const;
  // Starts calls in `stream`. They run after the work in `callers`; the caller also holds `stream` for latest().
  Status begin(DeviceStream callers, DeviceStream stream);
  // Event after the communicator's latest calls, which may be in another stream; null: there are none. Communicators
  // whose calls ran side by side share an event.
  const DeviceEvent* latest() const { return capture_ == 0 || capture_ == captured_in_ ? mark().get() : nullptr; }
  Status hold_for_latest(DeviceStream stream) { return mark()->hold(stream); }
  // Enclose the work of a call in its stream, provided the stream has no other work meanwhile. A call under test by the
  // autotuner is timed.
  Status start_timing(const Call& call, DeviceStream stream);
  Status end_timing(DeviceStream stream);
  // With time slicing (turns.h), calls are requested with ask() instead of launched, and await_turns() holds the stream
  // until they are done.
  bool in_turns() const { return turns_ != nullptr; }
  Status ask(const DeviceLaunch& launch, DeviceStream stream);
  Status await_turns(DeviceStream stream);
  // Ends the calls of all `members`, which have begun together in `stream`.
  static Status end_together(const std::set<DeviceCommunicator*>& members, DeviceStream stream);
  // Makes later work in `callers` wait for the calls.
  Status end(DeviceStream callers, DeviceStream stream);

 private:
  DeviceCommunicator(std::unique_ptr<Communicator> control, PeerSet peers);
  DeviceHome& home() const { return peers_.home(); }
  void forget();

  // ---- prepare.cc ----
  struct PlanKey {
    Problem problem;
    const Algorithm* algorithm;
    Protocol protocol;
    bool pipelined;
    CompressionFormat compression = CompressionFormat::none;
    bool operator==(const PlanKey&) const = default;
  };
  // Plan of this rank, one for each rank order that channels use.
  struct ConnectedPlan {
    PlanKey key;
    std::vector<std::vector<LaneSpec>> specs;  // Lanes and flags of each order.
    std::vector<std::unique_ptr<CompiledPlan>> compiled;
    std::uint32_t scratch_units = 0;
    SlotLimits limits;
    // Reported by last_run(), with rounding to nearest and with stochastic rounding.
    LastRun ran, at_random;
    std::vector<const Program*> programs() const;
  };
  struct CallKey {
    std::uint64_t count = 0, shape = 0;
    std::uint32_t forced = 0;
    bool in_place = false, in_windows = false;
    bool has_residual = false;
    bool operator==(const CallKey&) const = default;
  };
  // Prepared state of calls with one key: everything except their buffers.
  struct Prepared {
    CallKey key;
    // While the class is being tuned: prepared state for each candidate that calls have used.
    DeviceAutotuning::Class* tuned = nullptr;
    std::map<std::size_t, std::unique_ptr<Prepared>> tried;
    bool corrects = false;  // Adds the residual to the input and rounds the sum.
    bool mapped = false;
    const ConnectedPlan* plan = nullptr;  // Owned by plans_, which keeps it.
    CallRecord record;
    BatchCall entry;
    std::uint32_t thread_block_bytes = 0;
    std::byte* memory = nullptr;  // On the device: the image, then the lane ends.
    std::size_t memory_bytes = 0;
    std::byte* workspace = nullptr;
    std::size_t workspace_bytes = 0;
    std::size_t scratch_bytes = 0;
    std::size_t copied_bytes = 0;  // Bytes of a copy that it reads instead of the caller's input.
    std::uint64_t latest = 0;      // Number of the last call that used it.
    bool replayed = false;         // By a graph.
    Carried carried;               // With compression: data of its messages.
  };
  Status make_events();
  const std::shared_ptr<DeviceEvent>& mark() const { return capture_ == 0 ? latest_ : captured_; }
  Status settle();
  Status find_place(const HostMemory& board_memory);
  bool only_copies(const Call& call) const;  // True for collectives of a single rank.
  CallKey key_of(const Call& call, const CommunicatorOptions& options) const;
  std::unique_ptr<Prepared>& slot_of(const CallKey& key);
  Result<std::unique_ptr<Prepared>*> filled_slot(const Call& call, const CommunicatorOptions& options);
  Result<Prepared*> prepared_for(const Call& call, const CommunicatorOptions& options);
  Result<Prepared*> prepared_in(std::unique_ptr<Prepared>& slot, const Call& call, const CommunicatorOptions& options);
  // `way`: choice to follow, made for another block size; null: the tuner or a plugin chooses.
  Result<std::unique_ptr<Prepared>> prepare(const Call& call, const CommunicatorOptions& options, const Choice* way);
  Result<std::string_view> protocol_of(const CommunicatorOptions& options, CompressionFormat compression) const;
  Result<Query> query_of(const Call& call, const Problem& problem, const CommunicatorOptions& options) const;
  Result<Choice> choose_plan(const Call& call, const Query& query) const;
  Result<Problem> problem_for(const Call& call, const CommunicatorOptions& options);
  bool lanes_fit(const Algorithm& algorithm, const Problem& problem, const RankMapping& rank_mapping);
  // How thread blocks run a program.
  struct Manner {
    bool meets = false;                    // They meet in peers' memory.
    Protocol protocol = Protocol::simple;  // Protocol of its lanes.
    bool copies = false;                   // A fold of one source is a copy.
  };
  Status put_on_device(const std::vector<const Program*>& programs, const Launch& launch, Manner manner,
                       Prepared& prepared);
  void retire(std::unique_ptr<Prepared> prepared);
  Result<std::byte*> scratch(std::size_t bytes);
  Result<DeviceJob> job_of(Prepared& prepared, const Call& call, const CommunicatorOptions& options,
                           Signature signature);

  // ---- autotune.cc ----
  void prepare_to_autotune();
  bool autotunes(const Call& call, const CommunicatorOptions& options) const;
  bool may_be_tuned(const Candidate& candidate, const Query& query, std::uint64_t max_scratch_bytes);
  Result<std::unique_ptr<Prepared>> prepare_as(std::size_t candidate, const TuningClass& tuning, const Call& call,
                                               const CommunicatorOptions& options);
  Result<std::unique_ptr<Prepared>> prepare_autotuning(const Call& call, const CommunicatorOptions& options);
  Result<Prepared*> tried(std::unique_ptr<Prepared>& slot, const Call& call, const CommunicatorOptions& options,
                          const DeviceAutotuning::Turn& turn);
  void make_tuned(const Call& call, const CommunicatorOptions& options);
  std::string place_of_autotuners() const;

  // ---- compression.cc ----
  Result<ConnectedPlan*> connected_plan(const PlanKey& key, const Choice& choice);
  const RankMapping& rank_mapping_for(const Problem& problem) const;
  std::span<const RankMapping> rank_mappings_of(const Algorithm& algorithm, const Problem& problem) const;
  Status check_tags(const Algorithm& algorithm, const std::vector<Plan>& plans) const;
  Status add_order(const RankMapping& rank_mapping, const ProvedPlans& proved, Protocol protocol,
                   ConnectedPlan& connected);
  Status compression(const Plan& plan, const std::vector<LaneUse>& uses, Protocol protocol, ConnectedPlan& connected);

  // ---- rounding.cc ----
  static bool uses_rounding(const Prepared& prepared, const RequestedRounding& requested);
  Status bind_rounding(const Prepared& prepared, const Call& call, const RequestedRounding& requested, DeviceJob& job);
  Result<const KernelRounding*> show_rounding(KernelRounding rounding, std::uint32_t channels);

  // ---- in_windows.cc ----
  // Numbers of the windows that contain a call's buffers; 0: none.
  struct CallWindows {
    std::uint32_t input = 0, output = 0;
    bool both() const { return input != 0 && output != 0; }
  };
  CallWindows windows_of(const Call& call) const;
  void note_windows(const Call& call, CallRecord& record) const;
  Status check_windows(const CallRecord& ours);
  Status broken_promise(const CallRecord& ours, Rank peer, const CallRecord& theirs) const;

  // ---- messages.cc ----
  static CommunicatorOptions message_options(const CommunicatorOptions& options);
  Result<std::unique_ptr<Prepared>> prepare_message(const Call& call);

  // ---- network.cc ----
  Status start_proxy();
  bool look(std::int64_t still_ns);
  Status receive_call(Rank peer, std::uint64_t sequence);
  void drain();
  void expect_call();
  Status report_end(DeviceStream stream);
  std::string latest_call() const;
  std::string by_network(Rank peer) const;

  // ---- failing.cc ----
  Result<bool> idle();
  const KernelProgress& reported() const { return *reinterpret_cast<const KernelProgress*>(reported_.host); }
  Status explain(const KernelReport& report);
  Status compare_calls() const;  // Compares with the peers' calls, as far as they are published.

  const int process_;  // Process that created it.
  std::unique_ptr<Communicator> control_;
  Rank rank_, ranks_;
  PeerSet peers_;
  const RankMapping rank_mapping_, by_rails_;
  const Machine machine_;
  Advice advice_;
  const RingOrders rounds_;  // Rank orders of ring plans.
  DeviceLinks links_;
  DeviceWindows windows_;
  std::atomic<bool> settled_ = false;       // The next two are set; for any thread: they are written once.
  HostMemory board_memory_, reported_;      // The board, and a KernelProgress.
  std::unique_ptr<Turns> turns_;            // Null: no time slicing; thread blocks wait on the device.
  std::unique_ptr<Proxy> proxy_;            // Null: all ranks are on one host.
  std::uint64_t reported_call_ = 0;         // Last call that the proxy reported to other hosts.
  std::atomic<bool> messages_ = false;      // The latest calls are messages.
  std::atomic<std::uint32_t> expected_{0};  // Latest call that the proxy expects.
  const AddressExchange* place_ = nullptr;  // In device memory.
  std::shared_ptr<DeviceEvent> latest_;     // After the last call outside of a capture.
  std::shared_ptr<DeviceEvent> captured_;   // After the last call of a capture.
  std::unique_ptr<DeviceEvent> joins_;      // After the work in the caller's stream.
  std::uint64_t capture_ = 0;               // Capture of the calls since the last begin(); 0: not captured.
  DeviceStream stream_ = nullptr;           // Stream of the calls since the last begin().
  std::uint64_t captured_in_ = 0;           // Capture that contains captured_.
  std::uint64_t joining_ = 0;               // Number of collectives that joining took.
  std::uint64_t number_ = 0;                // Number of calls since.
  std::uint64_t mapped_calls_ = 0;
  std::atomic<const LastRun*> last_run_{nullptr};  // Thread-safe.
  std::byte* scratch_ = nullptr;
  std::size_t scratch_bytes_ = 0;
  // Whether lanes between ranks suffice for an algorithm that uses the hosts.
  struct Fit {
    const Algorithm* algorithm;
    Problem problem;
    bool fits;
  };
  std::vector<Fit> fits_;
  std::unique_ptr<DeviceAutotuning> autotuning_;  // Null: autotuning is off.
  // With autotuning: slots filled for calls that may still be refused.
  std::vector<std::unique_ptr<Prepared>*> readied_;
  CompressionCounter compression_counter_;
  RoundingChunks rounding_chunks_;
  std::vector<std::unique_ptr<ConnectedPlan>> plans_;
  std::array<std::unique_ptr<Prepared>, 256> calls_;
  std::vector<std::unique_ptr<Prepared>> kept_;  // Graphs may replay these calls.
};

}  // namespace tutti
