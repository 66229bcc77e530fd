// The communicator of ranks whose buffers lie in host memory, on one host or on several. Its functions lie in
// create.cc, split.cc, shrink.cc, prepare.cc (plans and their wiring), mapped.cc, execute.cc (running), learn.cc,
// rounding.cc, waiting.cc, deadlock.cc, far.cc (other hosts) and point_to_point.cc.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "src/bootstrap/watch.h"
#include "src/communicator/communicator.h"
#include "src/communicator/control/board.h"
#include "src/communicator/host/autotuning.h"
#include "src/communicator/host/links.h"
#include "src/communicator/planning/advice.h"
#include "src/executor/compiled_plan.h"
#include "src/executor/cpu/brief.h"
#include "src/executor/cpu/machine.h"
#include "src/executor/straighten.h"
#include "src/plan/rank_mapping.h"
#include "src/plan/verify.h"
#include "src/tuner/choose.h"

namespace tutti {

// Slots of each lane of large messages; the loop may run this far ahead.
inline constexpr std::uint32_t kSimpleSlots = 4;

// Where the ranks of a communicator live.
enum class Spread : std::uint8_t { one_process, many_processes };

class HostCommunicator final : public Communicator {
 public:
  HostCommunicator(Rank rank, Mesh mesh, Board board, CommunicatorOptions options, Spread spread);
  ~HostCommunicator() override;

  Rank rank() const override { return rank_; }
  Rank ranks() const override { return ranks_; }
  bool on_one_host() const override { return !spans_hosts_; }
  const Mesh* mesh() const override { return &mesh_; }
  const CommunicatorOptions& options() const override { return options_; }
  const Board& board() const override { return board_; }
  void announce(CallRecord& record) override {
    record.sequence = ++sequence_;
    board_.announce(rank_, record);
  }

  Result<double> predict_us(const Call& call, const CommunicatorOptions& options) override;
  void report_last_call() override { report_call(NotificationKind::call); }
  Ran last_run() const override;
  CompressionStatistics compression_statistics() const override { return compression_counter_.of(board_.last(rank_)); }

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
  Status fail(Status status) override;
  Status call_off(const Status& reason) override;
  void wait_for_remote_access() override;
  Status failure() override { return failure("outside of any call"); }
  Status failure(const std::string& when) override;
  // Like failure(), but leaves it to the caller to report the death of a peer to the other ranks.
  Status failure_unpublished(const std::string& when);

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
  // How a call is to go, where that is not as the tuner predicts.
  using WayName = std::tuple<std::string_view, Protocol, std::string_view>;
  struct Way {
    const Choice& lanes;
    const Choice* mapped;  // If all ranks show their buffers; null: nobody does.
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
    bool pipelined;  // Pieces may overlap: the order of steps, and so the form of lanes, depends on it.
    CompressionFormat compression = CompressionFormat::none;
    bool operator==(const PlanKey&) const = default;
  };
  struct ConnectedPlan {
    PlanKey key;
    Plan plan;  // This rank's, after fusing.
    std::vector<LaneUse> uses;
    std::vector<LaneSpec> specs;             // Specs of all uses.
    std::vector<LaneSpec> awaited;           // Lanes and flags whose address has not come yet.
    std::unique_ptr<CompiledPlan> compiled;  // Once none is awaited.
    MachineMemory memory;
    double roundings = 0;             // Roundings of a result under compression; see CostLaw.
    bool overlaps = false;            // Pieces do overlap.
    bool balanced = false;            // Proved: a message may take several slots.
    std::uint32_t longest_units = 1;  // Units of the longest message of any rank.
    std::uint32_t slot_bytes = 0;     // Data that a slot holds; 0: no lanes.
  };
  // All that a call of this shape needs but its buffers. Stays where it is: the interpreter points into it. A
  // communicator runs one collective at a time, so one interpreter serves all calls of the shape.
  struct Prepared {
    CallKey key;
    ConnectedPlan* plan = nullptr;  // Null: nothing to do.
    Choice choice;
    Launch launch;
    StraightProgram straight;
    std::optional<CompressedFold> compressed_fold;  // Where messages round; the interpreter's machine points to it,
    CallRounding rounding;                          // and to this.
    Carried carried;                                // Bytes that such a call sends.
    std::optional<Interpreter<CpuMachine>> interpreter;  // Once the plan is connected.
    CallRecord record;
    bool in_place = false;
    std::int64_t in_place_distance = 0;           // Distance of output and input in bytes if they are in one buffer.
    const Algorithm* mapped_algorithm = nullptr;  // Where this rank's buffers could be used as mapped memory.
    bool mapped_only = false;                     // It was forced.
    std::unique_ptr<Prepared> mapped;
    bool ran_mapped = false;  // Last time.
    bool copy_input = false;  // The algorithm does not work in place: it reads a copy.
    bool corrects = false;    // It reads the input with its residual; see rounding.cc.
    std::uint64_t scratch_bytes = 0;
    std::uint64_t input_bytes = 0;
    std::vector<Move> moves;             // Moves of a call that needs nothing but its buffers; else empty.
    Autotuning::Class* tuned = nullptr;  // On trial: each call may be made by another of these, and none is `latest_`.
    std::map<WayName, std::unique_ptr<Prepared>> tried;
    // The question of every call, whether it is like the one before.
    bool serves(const Call& call, std::uint32_t forced) const {
      return key.count == call.count && key.shape == own_shape_of(call) && key.forced == forced &&
             (call.output - call.input == in_place_distance) == key.in_place;
    }
  };
  // Query for the tuner about the call through lanes.
  Result<Query> query_for(const Call& call, const CommunicatorOptions& options) const;
  // Whether all ranks may see the buffers, as far as this one can tell.
  bool may_be_mapped(const Call& call) const;
  CallKey key_of(const Call& call, const CommunicatorOptions& options) const;
  Result<Prepared*> prepare_call(const Call& call, const CommunicatorOptions& options);
  // `way`: in this way, if there is such for the call. Null: as the tuner predicts.
  Result<std::unique_ptr<Prepared>> prepare(const Call& call, const CommunicatorOptions& options, const Way* way);
  void show_ran(const Prepared& prepared);
  Status lay_out(const Call& call, const Choice& choice, Prepared& prepared) const;
  void bind(const Call& call, Prepared& prepared) const;
  // That with NUMA domains serves who asks for an algorithm that knows groups.
  const RankMapping& rank_mapping_for(const Problem& flat, std::string_view named) const;
  Result<ConnectedPlan*> connected_plan(const PlanKey& key);
  Status connect_lanes(const std::vector<Plan>& plans, ConnectedPlan& connected);
  // The rank whose address a plan or a prepared call still waits for; none: ready to run.
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
  // The next collective of this rank is this; announce() tells the peers.
  void begin(Prepared& prepared, const CommunicatorOptions& options);
  void announce(Prepared& prepared, const Call& call);
  // Gives the interpreter the buffers. `announced`: the call as the peers see it.
  void bind_buffers(const Prepared& announced, Prepared& chosen, const Call& call, const AskedRounding& asked);
  Status run_at_once(Prepared& prepared, const Call& call, const AskedRounding& asked);
  // Out of line: compiled into each of its callers, it would no longer have the loop over the moves compiled into it.
  [[gnu::noinline]] Status run_brief(Prepared& prepared, const Call& call, const CommunicatorOptions& options);
  Status complete(Prepared& prepared);
  Status wait_and_advance(Prepared& prepared, Progress progress);

  // ---- rounding.cc ----
  // Prepares a compressed call after its buffers are known, before it runs.
  void bind_rounding(Prepared& prepared, const Call& call, const AskedRounding& asked);
  // An input with a residual is read from a copy that includes the residual and is rounded already.
  void correct_input(Prepared& prepared, const Call& call, const Dither* dither);

  // ---- learn.cc ----
  // A collective of this communicator's own, beside a call of the user's, which is what it passes for in messages.
  struct Aside {
    Call call;
    CommunicatorOptions options;
    CallRecord record;
  };
  // A stage of the trial of such calls has ended.
  struct Ended {
    Autotuning::Class* tuned = nullptr;
    Autotuning::TuningClass* tuning = nullptr;
  };
  bool autotunes(const Call& call, const CommunicatorOptions& options) const;
  Result<std::unique_ptr<Prepared>> prepare_autotuning(const Call& call, const CommunicatorOptions& options);
  Result<Prepared*> next_tried(std::unique_ptr<Prepared>& slot, const Call& call, const CommunicatorOptions& options);
  Status run_autotuning(const Call& call, const CommunicatorOptions& options);
  Aside recalling(const Call& call, const CommunicatorOptions& options);
  Aside summing(const Call& call, const CommunicatorOptions& options, const Ended& ended,
                std::vector<std::uint64_t>& sums_ns) const;
  Result<Prepared*> prepare_aside(const Aside& aside);
  void conclude(const Ended& ended, const std::vector<std::uint64_t>& sums_ns);

  // ---- waiting.cc ----
  // Counters and timestamps of one wait.
  struct WaitState {
    std::uint32_t polls = 0;
    std::int64_t began_ns = 0;
    std::int64_t yielded_ns = 0;
    std::int64_t probed_ns = 0;
    bool saw_leave = false;
    bool saw_failure = false;
    bool saw_death = false;
    bool reported_call = false;  // To other hosts.
    bool reported = false;       // To people.
  };
  static constexpr std::uint32_t kPollsPerLook = 1024;
  // Between two near cores a message is there after so many, with a pause each. Later ones are more patient, so that
  // they do not keep taking the line away from a writer who is far.
  static constexpr std::uint32_t kQuickPolls = 4;
  // Until the peer has moved.
  Status await_peer(const Blocked& blocked);
  // One more fruitless poll for `peer`. Fails when waiting has no sense any more.
  Status wait_for(Rank peer, WaitState& wait_state);
  Status look_around(Rank peer, WaitState& wait_state);
  void report_long_wait(Rank peer, std::int64_t waited_ms, WaitState& wait_state) const;
  std::string whom(Rank peer) const;
  Status notice_failure(WaitState& wait_state);
  Status probe_peers(WaitState& wait_state);
  // Fails when a rank leaves that others still count on.
  Status notice_leaving(Rank awaited, WaitState& wait_state);
  Status leaves(Rank leaver, Rank other, const std::string& call);
  // Parts of the message about a wait, see whom() and hint() in waiting.cc.
  std::string hint() const;
  std::string not_receiving() const;
  std::string absent(Rank awaited) const;
  std::string not_leaving(Rank peer) const;
  bool finalizes() const;

  // ---- deadlock.cc ----
  // Shows the other ranks of the host that this one waits for `peer`.
  void show_wait(Rank peer, const WaitState& wait_state) const;
  // Fails if this rank is in a send or recv that cannot end, because ranks wait for each other in a cycle.
  Status notice_deadlock(const WaitState& wait_state);
  struct PeerWait {
    Rank rank = 0;
    Wait wait;
    CallRecord call;
  };
  std::vector<PeerWait> waits_for_this_rank() const;

  // ---- waiting.cc ----
  void show_cpu();
  bool shares_cpu_with(Rank peer) const;
  bool one_here_is_behind() const;
  void find_oversubscription();
  Status compare_calls();
  Status mismatch(Rank peer, const CallRecord& theirs);
  Status mismatch_with(Rank peer);
  // The failure that all ranks are told, once it is there; `own` if that takes too long.
  Status published(Status own);
  // A failure of this rank stops all ranks, which would wait in vain; a query does not. An earlier failure may be
  // the cause of this one; then the cause is returned.
  Status reported(Status status);
  std::string current_call() const;
  std::string name() const;  // For messages: " on gradients".
  std::string leaving() const;
  std::byte* scratch(std::uint64_t bytes);
  std::byte* copy_of(const std::byte* input, std::uint64_t bytes);
  std::byte* room_for_copy(std::uint64_t bytes);

  // ---- far.cc ----
  // Takes in what ranks of other hosts have told.
  void poll_notifications();
  void report_failure();
  Status poll_before_call();
  Status compare_last_calls() const;
  void report_call(NotificationKind kind);
  std::string never_received() const;
  Status wait_remote(Rank peer, WaitState& wait_state);
  void find_others(std::int64_t now);
  void report_remote_wait(std::int64_t now, WaitState& wait_state);
  // A call ends only after the kernel has accepted its data: no other thread sends it to other hosts.
  bool drained();
  Status drain();

  // ---- mapped.cc ----
  BufferReference refer(const std::byte* memory, std::uint64_t bytes);
  void show_buffers(Prepared& prepared, const Call& call);
  Status receive_regions();
  enum class Sight : std::uint8_t { waiting, hidden, mapped };
  Result<Sight> see_buffers(const Prepared& prepared, Rank& awaited);
  Status locate_buffers(const Prepared& prepared);
  Result<std::byte*> locate(Rank peer, const BufferReference& reference, std::uint64_t bytes);
  Result<Prepared*> mapped_variant(Prepared& prepared, const Call& call);

  // ---- split.cc ----
  // A communicator that is being split off.
  struct Part {
    std::vector<Rank> members;  // By their numbers here.
    Deadline deadline;
    std::optional<Mesh> mesh;
  };
  // Returns the ranks of this rank's part, in its order; none without a colour.
  Result<std::vector<Rank>> agree_on_members(int color, int key);
  Result<ReceivedFrame> await_passed(Rank peer, FrameKind kind, const Deadline& deadline);
  Result<ReceivedFrame> await_in_part(Part& part, Rank from, FrameKind kind);
  Status exchange_contacts(const Part& part, std::vector<Contact>& contacts);
  Result<std::unique_ptr<Communicator>> make_part(Part& part, const CommunicatorOptions& options);
  std::string during_split() const;

  // ---- point_to_point.cc ----
  // Messages of one lane go one after the other.
  struct Turns {
    std::uint64_t taken = 0;
    std::uint64_t served = 0;
  };
  Result<std::unique_ptr<Operation>> start_messages(const Call& call);
  void announce_unequal(const Call& call);
  // Once all ranks have left: fails if this one sent or was sent what nobody received.
  Status find_lost_messages();

  CommunicatorOptions options_;
  Rank rank_;
  Rank ranks_;
  Mesh mesh_;
  Board board_;
  PeerRegions regions_;
  Links links_;
  bool one_process_;  // All ranks are threads of this process.
  bool spans_hosts_;  // There are ranks on other hosts.
  const RankMapping rank_mapping_;
  const RankMapping by_domains_;  // Hosts and the NUMA domains of each; nothing where there are no several of them.
  Advice advice_;
  const Machine machine_;  // As the tuner is to see it; the same on all ranks.
  std::mutex hearing_;
  bool shares_cpu_ = false;       // As the last look found.
  std::int64_t received_ns_ = 0;  // When a call has last looked for news.
  PassedRegions passed_regions_;
  std::vector<RankBuffers> peer_memory_;  // Buffers of the running mapped call.
  bool oversubscribed_ = false;           // Fewer CPUs for the ranks than ranks; decided once all have shown theirs.
  bool oversubscription_known_ = false;
  std::int64_t timeout_ms_;             // Timeout of the running call.
  std::uint32_t aborted_ = 0;           // 1: by abort(), since the last shrink() began.
  std::uint64_t sequence_ = 0;          // Collectives so far.
  const CallRecord* record_ = nullptr;  // Record of the running collective.
  const Call* message_ = nullptr;       // The send or recv that waits.
  struct {
    std::int64_t message_began_ns = 0;  // Identifies this rank's wait.
    std::vector<PeerWait> waits;
  } seen_waits_;               // State when notice_deadlock() first saw these waits.
  CallRecord unequal_record_;  // Record of the running all_to_all_v.
  std::vector<std::unique_ptr<ConnectedPlan>> plans_;
  std::array<std::unique_ptr<Prepared>, 256> calls_;
  Prepared* latest_ = nullptr;
  Autotuning autotuning_;
  std::atomic<Rounding> ran_rounding_{Rounding::nearest};
  std::atomic<const ConnectedPlan*> ran_{nullptr};  // Plan of the last call, for any thread: plans do not change.
  CompressionCounter compression_counter_;
  std::vector<std::byte> scratch_, input_copy_;
  std::map<std::pair<LaneSpec, bool>, Turns> turns_;  // By lane, and whether this rank sends on it.
  std::atomic<std::uint64_t> tickets_{0};             // Calls through streams so far, and how many of them are done.
  std::atomic<std::uint64_t> served_{0};
};

}  // namespace tutti
