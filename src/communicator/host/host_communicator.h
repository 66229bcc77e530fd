// Communicator of ranks whose buffers lie in host memory, on one or several hosts. Its functions are in create.cc,
// split.cc, shrink.cc, prepare.cc (plans and their lanes), mapped.cc, execute.cc (running), autotune.cc, rounding.cc
// and point_to_point.cc.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "src/communicator/communicator.h"
#include "src/communicator/host/autotuning.h"
#include "src/communicator/host/control_plane.h"
#include "src/communicator/host/waiter.h"
#include "src/communicator/planning/advice.h"
#include "src/executor/compiled_plan.h"
#include "src/executor/cpu/backend.h"
#include "src/executor/cpu/brief.h"
#include "src/executor/straighten.h"
#include "src/plan/rank_mapping.h"
#include "src/plan/verify.h"
#include "src/tuner/choose.h"

namespace tutti {

// Number of slots of each lane for large messages, and the maximum skew of a loop.
inline constexpr std::uint32_t kSimpleSlots = 4;

class HostCommunicator final : public Communicator {
 public:
  HostCommunicator(Rank rank, Mesh mesh, Board board, CommunicatorOptions options, Spread spread);
  ~HostCommunicator() override;

  Rank rank() const override { return membership_.rank; }
  Rank ranks() const override { return membership_.ranks; }
  bool on_one_host() const override { return !membership_.spans_hosts; }
  const Mesh* mesh() const override { return &membership_.mesh; }
  const CommunicatorOptions& options() const override { return membership_.options; }
  const Board& board() const override { return membership_.board; }
  void announce(CallRecord& record) override {
    control_.current.number(record);
    membership_.board.announce(membership_.rank, record);
  }

  Result<double> predict_us(const Call& call, const CommunicatorOptions& options) override;
  void report_last_call() override { control_.notifications.report_calls(NotificationKind::call); }
  LastRun last_run() const override;
  CompressionStatistics compression_statistics() const override {
    return compression_counter_.of(membership_.board.last(membership_.rank));
  }

  Status run(const Call& call, const CommunicatorOptions* options) override;
  Result<std::unique_ptr<Operation>> start(const Call& call, const CommunicatorOptions* options) override;
  Result<std::unique_ptr<Communicator>> split(int color, int key, const CommunicatorOptions& options) override;
  Result<std::unique_ptr<Communicator>> shrink(const std::vector<Rank>& excluded,
                                               const CommunicatorOptions& options) override;
  Status pass(Rank to, int descriptor) override;
  Result<File> take_passed(Rank from) override;
  Status finalize() override;
  Status leave() override;
  void abort() override;
  Status fail(Status status) override { return control_.failures.fail(std::move(status)); }
  Status call_off(const Status& reason) override { return control_.failures.call_off(reason); }
  void wait_for_remote_access() override { control_.failures.wait_for_remote_access(); }
  Status failure() override { return failure("outside of any call"); }
  Status failure(const std::string& when) override { return control_.failures.found(when); }

  std::uint64_t take_ticket() override { return tickets_.fetch_add(1); }
  Status await_ticket(std::uint64_t ticket) override;
  void finish_ticket() override {
    served_.fetch_add(1);
    served_.notify_all();
  }

 private:
  friend class CollectiveOperation;
  friend class AutotuningOperation;
  friend class MessageOperation;

  // ---- prepare.cc ----
  // Choices for a call that replace the prediction of the tuner.
  using WayName = std::tuple<std::string_view, Protocol, std::string_view>;
  struct Way {
    const Choice& lanes;
    const Choice* mapped;  // Used if all ranks show their buffers; null: buffers are not shown.
    WayName name() const { return {lanes.algorithm, lanes.protocol, mapped == nullptr ? "" : mapped->algorithm}; }
  };
  struct CallKey {
    std::uint64_t count, shape;
    std::uint32_t forced;
    bool in_place;
    bool operator==(const CallKey&) const = default;
  };
  struct PlanKey {
    Problem problem;
    const Algorithm* algorithm;
    Protocol protocol;
    bool pipelined;  // Chunks may overlap. The order of steps, and therefore the form of lanes, depends on it.
    CompressionFormat compression = CompressionFormat::none;
    bool operator==(const PlanKey&) const = default;
  };
  struct ConnectedPlan {
    PlanKey key;
    Plan plan;  // This rank's plan after fusing.
    std::vector<LaneUse> uses;
    std::vector<LaneSpec> specs;             // By index in `uses`.
    std::vector<LaneSpec> awaited;           // Lanes and flags whose address has not arrived yet.
    std::unique_ptr<CompiledPlan> compiled;  // Set once `awaited` is empty.
    BackendMemory memory;
    double roundings = 0;             // Number of roundings of a result under compression; see CostLaw.
    bool overlaps = false;            // Chunks may overlap.
    bool balanced = false;            // Verified: a message may take several slots.
    std::uint32_t longest_units = 1;  // Units of the longest message of any rank.
    std::uint32_t slot_bytes = 0;     // Data bytes that a slot holds; 0: no lanes.
  };
  // State for all calls of one shape, except the buffers. Must not move, since the interpreter has pointers to it. A
  // communicator runs one collective at a time, so one interpreter serves all calls of the shape.
  struct Prepared {
    CallKey key;
    ConnectedPlan* plan = nullptr;  // Null: the call does nothing.
    Choice choice;
    Launch launch;
    StraightProgram straight;
    // Set for compressed messages. The interpreter's machine has pointers to this and the next member.
    std::optional<CompressedFold> compressed_fold;
    CallRounding rounding;
    Carried carried;                                     // Bytes that such a call sends.
    std::optional<Interpreter<CpuBackend>> interpreter;  // Set once the plan is connected.
    CallRecord record;
    bool in_place = false;
    std::int64_t in_place_distance = 0;  // In bytes, from input to output, if they are in one buffer.
    // Replaces the plan if the buffers of all ranks are mapped; null: none.
    const Algorithm* mapped_algorithm = nullptr;
    bool mapped_only = false;  // The options force the mapped algorithm.
    std::unique_ptr<Prepared> mapped;
    bool ran_mapped = false;  // Whether the last call was mapped.
    bool copy_input = false;  // The algorithm does not work in place and reads a copy.
    bool corrects = false;    // The algorithm reads the input with its residual added; see rounding.cc.
    std::uint64_t scratch_bytes = 0;
    std::uint64_t input_bytes = 0;
    std::vector<Move> moves;  // Moves of a call that only needs its buffers; otherwise empty.
    // Set while the call is autotuned. Calls then use one of `tried`, and `latest_` points to none of them.
    Autotuning::Class* tuned = nullptr;
    std::map<WayName, std::unique_ptr<Prepared>> tried;
    // Returns whether a call has this shape. Checked for each call, against the shape of the previous call.
    bool serves(const Call& call, std::uint32_t forced) const {
      return key.count == call.count && key.shape == own_shape_of(call) && key.forced == forced &&
             (call.output - call.input == in_place_distance) == key.in_place;
    }
  };
  // Returns the tuner's query for the call through lanes.
  Result<Query> query_for(const Call& call, const CommunicatorOptions& options) const;
  // Returns whether all ranks may be able to map the buffers, as far as this rank knows.
  bool may_be_mapped(const Call& call) const;
  CallKey key_of(const Call& call, const CommunicatorOptions& options) const;
  Result<Prepared*> prepare_call(const Call& call, const CommunicatorOptions& options);
  // Prepares the call with the choices of `way`, if they support the call. Null: as predicted by the tuner.
  Result<std::unique_ptr<Prepared>> prepare(const Call& call, const CommunicatorOptions& options, const Way* way);
  void show_ran(const Prepared& prepared);
  Status lay_out(const Call& call, const Choice& choice, Prepared& prepared) const;
  void bind(const Call& call, Prepared& prepared) const;
  // Returns the mapping with NUMA domains if the named algorithm supports it, otherwise the mapping with hosts.
  const RankMapping& rank_mapping_for(const Problem& flat, std::string_view named) const;
  Result<ConnectedPlan*> connected_plan(const PlanKey& key);
  Status connect_lanes(const std::vector<Plan>& plans, ConnectedPlan& connected);
  // Returns the rank whose address a plan or a prepared call still needs; nullopt: ready to run.
  Result<std::optional<Rank>> awaited_by(ConnectedPlan& connected);
  Result<std::optional<Rank>> awaited_by(const Call& call, Prepared& prepared);
  void compile(ConnectedPlan& connected);

  // ---- execute.cc ----
  Status run_between_hosts(const Call& call, const CommunicatorOptions& options);
  // Runs the call. Reports a failure to all ranks.
  Status run_and_report(const Call& call, const CommunicatorOptions& options);
  Status run_collective(const Call& call, const CommunicatorOptions& options);
  Status run_prepared(Prepared& prepared, const Call& call, const CommunicatorOptions& options);
  Result<std::unique_ptr<Operation>> start_collective(const Call& call, const CommunicatorOptions& options);
  // Makes `prepared` the next collective of this rank. announce() then publishes it to the peers.
  void begin(Prepared& prepared, const CommunicatorOptions& options);
  void announce(Prepared& prepared, const Call& call);
  // Passes the buffers to the interpreter. `announced` is the call as peers see it.
  void bind_buffers(const Prepared& announced, Prepared& chosen, const Call& call, const RequestedRounding& requested);
  Status run_at_once(Prepared& prepared, const Call& call, const RequestedRounding& requested);
  // Not inlined: if compiled into each caller, the loop over the moves would not be inlined into it.
  [[gnu::noinline]] Status run_brief(Prepared& prepared, const Call& call, const CommunicatorOptions& options);
  Status complete(Prepared& prepared);
  Status wait_and_advance(Prepared& prepared, Progress progress);

  // ---- rounding.cc ----
  // Prepares a compressed call after its buffers are known, before it runs.
  void bind_rounding(Prepared& prepared, const Call& call, const RequestedRounding& requested);
  // Replaces an input that has a residual by a copy that includes the residual and is already rounded.
  void correct_input(Prepared& prepared, const Call& call, const Dither* dither);

  // ---- autotune.cc ----
  // Internal collective beside a call of the user. Error messages describe it as the user's call.
  struct InternalCollective {
    Call call;
    CommunicatorOptions options;
    CallRecord record;
  };
  // Class whose stage of autotuning has ended with a call; `tuning` is null if none has ended.
  struct Ended {
    Autotuning::Class* tuned = nullptr;
    Autotuning::TuningClass* tuning = nullptr;
  };
  bool autotunes(const Call& call, const CommunicatorOptions& options) const;
  Result<std::unique_ptr<Prepared>> prepare_autotuning(const Call& call, const CommunicatorOptions& options);
  Result<Prepared*> next_tried(std::unique_ptr<Prepared>& slot, const Call& call, const CommunicatorOptions& options);
  Status run_autotuning(const Call& call, const CommunicatorOptions& options);
  InternalCollective recalling(const Call& call, const CommunicatorOptions& options);
  InternalCollective summing(const Call& call, const CommunicatorOptions& options, const Ended& ended,
                             std::vector<std::uint64_t>& sums_ns) const;
  Result<Prepared*> prepare_internal(const InternalCollective& internal);
  void conclude(const Ended& ended, const std::vector<std::uint64_t>& sums_ns);

  std::byte* scratch(std::uint64_t bytes);
  std::byte* copy_of(const std::byte* input, std::uint64_t bytes);
  std::byte* room_for_copy(std::uint64_t bytes);

  // ---- mapped.cc ----
  BufferReference refer(const std::byte* memory, std::uint64_t bytes);
  void show_buffers(Prepared& prepared, const Call& call);
  Status receive_regions();
  enum class BufferVisibility : std::uint8_t { waiting, hidden, mapped };
  Result<BufferVisibility> see_buffers(const Prepared& prepared, Rank& awaited);
  Status locate_buffers(const Prepared& prepared);
  Result<std::byte*> locate(Rank peer, const BufferReference& reference, std::uint64_t bytes);
  Result<Prepared*> mapped_variant(Prepared& prepared, const Call& call);

  // ---- split.cc ----
  // Sub-communicator that a split creates.
  struct Part {
    std::vector<Rank> members;  // By rank in this communicator.
    Deadline deadline;
    std::optional<Mesh> mesh;
  };
  // Returns the members of this rank's sub-communicator, in its order; empty if color is negative.
  Result<std::vector<Rank>> agree_on_members(int color, int key);
  Result<ReceivedFrame> await_passed(Rank peer, FrameKind kind, const Deadline& deadline);
  Result<ReceivedFrame> await_in_part(Part& part, Rank from, FrameKind kind);
  Status exchange_contacts(const Part& part, std::vector<Contact>& contacts);
  Result<std::unique_ptr<Communicator>> make_part(Part& part, const CommunicatorOptions& options);
  std::string during_split() const;

  // ---- point_to_point.cc ----
  // Order of the messages in one lane.
  struct Turns {
    std::uint64_t taken = 0;
    std::uint64_t served = 0;
  };
  Result<std::unique_ptr<Operation>> start_messages(const Call& call, std::int64_t timeout_ms);
  void announce_unequal(const Call& call, std::int64_t timeout_ms);
  // Called after all ranks have left. Fails if a message that this rank sent, or that was sent to it, was not received.
  Status find_lost_messages();

  ControlPlane control_;
  Membership& membership_;
  Waiter waiter_{control_};
  const RankMapping rank_mapping_;
  const RankMapping by_domains_;  // Hosts and their NUMA domains; empty if no host has several domains.
  Advice advice_;
  const Machine machine_;  // Machine model for the tuner; equal on all ranks.
  PassedRegions passed_regions_;
  std::vector<RankBuffers> peer_memory_;  // Buffers of the running mapped call.
  std::uint32_t aborted_ = 0;             // 1: abort() was called since the last shrink() began.
  CallRecord unequal_record_;             // Record of the running all_to_all_v.
  std::vector<std::unique_ptr<ConnectedPlan>> plans_;
  std::array<std::unique_ptr<Prepared>, 256> calls_;
  Prepared* latest_ = nullptr;
  Autotuning autotuning_;
  std::atomic<Rounding> ran_rounding_{Rounding::nearest};
  // Plan of the last call. Read by any thread, since plans do not change.
  std::atomic<const ConnectedPlan*> ran_{nullptr};
  CompressionCounter compression_counter_;
  std::vector<std::byte> scratch_, input_copy_;
  std::map<std::pair<LaneSpec, bool>, Turns> turns_;  // By lane, and by whether this rank sends on it.
  std::atomic<std::uint64_t> tickets_{0};  // Number of calls in streams so far; `served_` is the number that are done.
  std::atomic<std::uint64_t> served_{0};
};

}  // namespace tutti
