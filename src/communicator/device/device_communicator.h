// A rank whose buffers lie in the memory of a device: calls are enqueued in the caller's streams, where thread blocks
// of the device run_plan their plans. It joins, splits, fails and ends as the communicator on host memory does that it
// is made of. Its functions lie in create.cc, choice.cc, learn.cc, prepare.cc, wire.cc, rounding.cc, in_windows.cc,
// messages.cc, streams.cc, network.cc and failing.cc; enqueue.cc puts their jobs into streams.
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

// Device work of one call: a copy, or rounding of an input with its residual, then a launch; each part is optional.
struct DeviceJob {
  std::byte* copy_to = nullptr;  // Null: no copy.
  const std::byte* copy_from = nullptr;
  std::size_t copy_bytes = 0;
  CorrectTask correct;  // Without a format: no rounding.
  bool launches = false;
  BatchCall entry;
  std::uint32_t thread_block_bytes = 0;
};

// How far loops may run ahead, whatever the lane's form.
inline constexpr std::uint32_t kSlotsAhead = 4;
// Granule of parts of units in bytes: a cache line of a device.
inline constexpr std::uint32_t kPackGranule = 128;
// Data that a slot holds, in bytes.
std::uint32_t slot_data(const SlotSizes& slots, Protocol protocol);

// Devices read and write whole elements.
Status check_alignment(const Call& call);

class DeviceCommunicator final : public Communicator {
 public:
  // Moves members of host memory onto a device; all ranks do, and block until they have. Several: all are this
  // process's, driven by this thread.
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
  Ran last_run() const override {
    const Ran* ran = last_run_.load(std::memory_order_acquire);
    return ran == nullptr ? Ran{} : *ran;
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

  // Until what it was given is done, of which graphs' replays are no part; then failure(), and if it has failed, until
  // no thread block is in this rank's memory any more, as by wait_for_remote_access().
  Status await_own_calls();

  // Registers memory that peers may access, see windows.h. No call may use a window when it is withdrawn. After a
  // failure, opened windows stay open until the communicator ends.
  Result<WindowHandle> show_window(const WindowBuffer& own);
  bool has_window(WindowHandle window) const { return windows_.knows(window); }
  Status withdraw_window(WindowHandle window);
  // How many of its collectives so far had plans that work in the peers' memory.
  std::uint64_t mapped_calls() const { return mapped_calls_; }

  // How often the thread has polled that carries to other hosts and back; 0: there is none.
  std::uint64_t proxy_rounds() const;

  Device& device() const { return home().device(); }
  const PeerSet& peers() const { return peers_; }
  std::size_t device_bytes() const { return home().bytes(); }  // That it has taken there so far.

  // ---- For enqueue.cc, which calls them in the order of the calls. ----
  bool has_failed() const;  // As far as is known at once; failure() knows why.
  // All that can fail or take memory of a call, before any of its group is shown to the peers. `roundings`: those of
  // the communicator in the group so far that ask more of rounding than the format.
  Status get_ready(const Call& call, const CommunicatorOptions& options, std::size_t& roundings);
  // None of the calls that were got ready will be made.
  void forget_ready();
  Result<DeviceJob> collective(const Call& call, const CommunicatorOptions& options);
  Result<DeviceJob> message(const Call& call, const CommunicatorOptions& options);
  std::uint32_t message_channels(const Call& call) const;
  // The calls from now on go to `stream`, after what is in `callers`, and after latest().
  Status begin(DeviceStream callers, DeviceStream stream);
  // After the communicator's calls so far, which may have gone to other streams; null: there are none. Communicators
  // whose calls ran side by side share it.
  const DeviceEvent* latest() const { return capture_ == 0 || capture_ == captured_in_ ? mark().get() : nullptr; }
  Status hold_for_latest(DeviceStream stream) { return mark()->hold(stream); }
  // Around what a call comes to in its stream, if nothing else goes on in there: where it is on trial, it is timed.
  Status start_timing(const Call& call, DeviceStream stream);
  Status end_timing(DeviceStream stream);
  // Where the device is shared in turns, the rank's calls are asked for instead of launched, and the stream is held
  // until they are done.
  bool in_turns() const { return turns_ != nullptr; }
  Status ask(const DeviceLaunch& launch, DeviceStream stream);
  Status await_turns(DeviceStream stream);
  // They end there, and so do those of the others, which have begun with them.
  static Status end_together(const std::set<DeviceCommunicator*>& members, DeviceStream stream);
  // Later work in `callers` runs after them.
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
  // Plan of this rank, for each rank order that channels use.
  struct ConnectedPlan {
    PlanKey key;
    std::vector<std::vector<LaneSpec>> specs;  // Specs of its lanes and flags.
    std::vector<std::unique_ptr<CompiledPlan>> compiled;
    std::uint32_t scratch_units = 0;
    SlotLimits limits;
    Ran ran, at_random;  // Calls by it, as who asks is told; and where numbers are rounded at random.
    std::vector<const Program*> programs() const;
  };
  struct CallKey {
    std::uint64_t count = 0, shape = 0;
    std::uint32_t forced = 0;
    bool in_place = false, in_windows = false;
    bool has_residual = false;
    bool operator==(const CallKey&) const = default;
  };
  // All that a call of this shape needs but its buffers.
  struct Prepared {
    CallKey key;
    // On trial: each call may be made by another of these, by candidate.
    DeviceAutotuning::Class* tuned = nullptr;
    std::map<std::size_t, std::unique_ptr<Prepared>> tried;
    bool corrects = false;  // It reads the input with its residual, rounded.
    bool mapped = false;
    const ConnectedPlan* plan = nullptr;  // Stays.
    CallRecord record;
    BatchCall entry;
    std::uint32_t thread_block_bytes = 0;
    std::byte* memory = nullptr;  // On the device: the image, then the ends of lanes.
    std::size_t memory_bytes = 0;
    std::byte* workspace = nullptr;
    std::size_t workspace_bytes = 0;
    std::size_t scratch_bytes = 0;
    std::size_t copied_bytes = 0;  // Bytes of a copy that it reads instead of the caller's input.
    std::uint64_t latest = 0;      // Number of the last call that used it.
    bool replayed = false;         // By a graph.
    Carried carried;               // Where messages round.
  };
  Status make_events();
  const std::shared_ptr<DeviceEvent>& mark() const { return capture_ == 0 ? latest_ : captured_; }
  Status settle();
  Status find_place(const HostMemory& board_memory);
  bool only_copies(const Call& call) const;  // One rank.
  CallKey key_of(const Call& call, const CommunicatorOptions& options) const;
  std::unique_ptr<Prepared>& slot_of(const CallKey& key);
  Result<std::unique_ptr<Prepared>*> filled_slot(const Call& call, const CommunicatorOptions& options);
  Result<Prepared*> prepared_for(const Call& call, const CommunicatorOptions& options);
  Result<Prepared*> prepared_in(std::unique_ptr<Prepared>& slot, const Call& call, const CommunicatorOptions& options);
  // `way`: as a call of another size went; null: as the tuner or a plugin says.
  Result<std::unique_ptr<Prepared>> prepare(const Call& call, const CommunicatorOptions& options, const Choice* way);
  Result<std::string_view> protocol_of(const CommunicatorOptions& options, CompressionFormat compression) const;
  Result<Query> query_of(const Call& call, const Problem& problem, const CommunicatorOptions& options) const;
  Result<Choice> choose_plan(const Call& call, const Query& query) const;
  Result<Problem> problem_for(const Call& call, const CommunicatorOptions& options);
  bool lanes_fit(const Algorithm& algorithm, const Problem& problem, const RankMapping& rank_mapping);
  // How a program's thread blocks work.
  struct Manner {
    bool meets = false;                    // In the peers' memory.
    Protocol protocol = Protocol::simple;  // Protocol of its lanes.
    bool copies = false;                   // A fold of one source is a copy.
  };
  Status put_on_device(const std::vector<const Program*>& programs, const Launch& launch, Manner manner,
                       Prepared& prepared);
  void retire(std::unique_ptr<Prepared> prepared);
  Result<std::byte*> scratch(std::size_t bytes);
  Result<DeviceJob> job_of(Prepared& prepared, const Call& call, const CommunicatorOptions& options,
                           Signature signature);

  // ---- learn.cc ----
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

  // ---- wire.cc ----
  Result<ConnectedPlan*> connected_plan(const PlanKey& key, const Choice& choice);
  const RankMapping& rank_mapping_for(const Problem& problem) const;
  std::span<const RankMapping> rank_mappings_of(const Algorithm& algorithm, const Problem& problem) const;
  Status check_tags(const Algorithm& algorithm, const std::vector<Plan>& plans) const;
  Status add_order(const RankMapping& rank_mapping, const ProvedPlans& proved, Protocol protocol,
                   ConnectedPlan& connected);
  Status compression(const Plan& plan, const std::vector<LaneUse>& uses, Protocol protocol, ConnectedPlan& connected);

  // ---- rounding.cc ----
  static bool asks_of_rounding(const Prepared& prepared, const AskedRounding& asked);
  Status bind_rounding(const Prepared& prepared, const Call& call, const AskedRounding& asked, DeviceJob& job);
  Result<const KernelRounding*> show_rounding(KernelRounding rounding, std::uint32_t channels);

  // ---- in_windows.cc ----
  // Numbers of the windows that a call's buffers lie in.
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
  Status compare_calls() const;  // With those of the peers, as far as both are known.

  const int process_;  // That made it.
  std::unique_ptr<Communicator> control_;
  Rank rank_, ranks_;
  PeerSet peers_;
  const RankMapping rank_mapping_, by_rails_;
  const Machine machine_;
  Advice advice_;
  const RingOrders rounds_;  // Rank orders of ring plans.
  DeviceLinks links_;
  DeviceWindows windows_;
  std::atomic<bool> settled_ = false;       // The next two are there, for any thread: they are written once.
  HostMemory board_memory_, reported_;      // The board, and a KernelProgress.
  std::unique_ptr<Turns> turns_;            // Null: thread blocks wait for their peers on the device.
  std::unique_ptr<Proxy> proxy_;            // Null: all ranks are on one host.
  std::uint64_t reported_call_ = 0;         // As far as the proxy has told others.
  std::atomic<bool> messages_ = false;      // Not collectives came last.
  std::atomic<std::uint32_t> expected_{0};  // Call that the proxy was told of last.
  const MeetingPlace* place_ = nullptr;     // On the device.
  std::shared_ptr<DeviceEvent> latest_;     // After the last call that was not captured,
  std::shared_ptr<DeviceEvent> captured_;   // after the last that was,
  std::unique_ptr<DeviceEvent> joins_;      // and in the caller's stream.
  std::uint64_t capture_ = 0;               // Capture of the calls since the last begin(); 0: not captured.
  DeviceStream stream_ = nullptr;           // Where these go.
  std::uint64_t captured_in_ = 0;           // Where captured_ lies.
  std::uint64_t joining_ = 0;               // Collectives by which ranks joined,
  std::uint64_t number_ = 0;                // and all calls since.
  std::uint64_t mapped_calls_ = 0;
  std::atomic<const Ran*> last_run_{nullptr};  // For any thread.
  std::byte* scratch_ = nullptr;
  std::size_t scratch_bytes_ = 0;
  // Whether between ranks there is room for the lanes of an algorithm that knows hosts.
  struct Fit {
    const Algorithm* algorithm;
    Problem problem;
    bool fits;
  };
  std::vector<Fit> fits_;
  std::unique_ptr<DeviceAutotuning> autotuning_;     // Null: nothing is.
  std::vector<std::unique_ptr<Prepared>*> readied_;  // Where that is: filled for calls that may still be refused.
  CompressionCounter compression_counter_;
  RoundingChunks rounding_chunks_;
  std::vector<std::unique_ptr<ConnectedPlan>> plans_;
  std::array<std::unique_ptr<Prepared>, 256> calls_;
  std::vector<std::unique_ptr<Prepared>> kept_;  // Graphs may replay them.
};

}  // namespace tutti
