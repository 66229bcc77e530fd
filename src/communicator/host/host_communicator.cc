#include "src/communicator/host/host_communicator.h"

#include <utility>

#include "src/base/atomic.h"
#include "src/base/caught.h"
#include "src/base/no_cancellation.h"
#include "src/communicator/group.h"
#include "src/communicator/host/shrink.h"
#include "src/communicator/host/split.h"

namespace tutti {
namespace {

// Returns the options of a communicator that is made of another one. An inherited name gets a suffix, so that messages
// distinguish the new communicator from its parent and from others. `unnamed` replaces the name of a parent without
// one.
CommunicatorOptions options_of_child(const CommunicatorOptions& given, const std::string& parent,
                                     const std::string& unnamed, const std::string& suffix) {
  CommunicatorOptions options = given;
  if (given.name == parent) options.name = (parent.empty() ? unnamed : parent) + " (" + suffix + ")";
  return options;
}

}  // namespace

HostCommunicator::HostCommunicator(Rank rank, Mesh mesh, Board board, CommunicatorOptions options, Spread spread)
    : control_(rank, std::move(mesh), std::move(board), std::move(options), spread) {}

HostCommunicator::~HostCommunicator() {
  tagged_messages_.close();
  control_.membership.mesh.leave();
}

// ---- Calls ----

void HostCommunicator::announce(CallRecord& record) {
  control_.current.number(record);
  board().announce(rank(), record);
}

// Inlined, since every small call runs through it.
[[gnu::always_inline]] inline Status HostCommunicator::run_and_report(const Call& call,
                                                                      const CommunicatorOptions& chosen) {
  Status status = caught([&] {
    PreparedCall* const prepared = collectives_.brief_for(call, chosen);
    return prepared != nullptr ? collectives_.run_brief(*prepared, call, chosen) : run_unprepared(call, chosen);
  });
  if (status.ok()) [[likely]]
    return status;
  status = control_.failures.reported(std::move(status));
  wait_for_remote_access();
  return status;
}

Status HostCommunicator::run(const Call& call, const CommunicatorOptions* options) {
  const CommunicatorOptions& chosen = options == nullptr ? membership().options : *options;
  if (board().failed()) [[unlikely]]
    return board().failure(rank());
  return membership().spans_hosts ? run_between_hosts(call, chosen) : run_and_report(call, chosen);
}

Status HostCommunicator::run_between_hosts(const Call& call, const CommunicatorOptions& chosen) {
  const NoCancellation until_return;
  TUTTI_CHECK_OK(control_.notifications.poll_before_call());
  return run_and_report(call, chosen);
}

Status HostCommunicator::run_unprepared(const Call& call, const CommunicatorOptions& chosen) {
  if (call.kind == Kind::collective) return collectives_.run(call, chosen);
  const NoCancellation until_return;
  std::unique_ptr<Operation> started = TUTTI_TRY(messages_.start(call, chosen.timeout_ms));
  std::vector<std::unique_ptr<Operation>> operations;
  operations.push_back(std::move(started));
  return drive(operations);
}

Result<std::unique_ptr<Operation>> HostCommunicator::start(const Call& call, const CommunicatorOptions* options) {
  const CommunicatorOptions& chosen = options == nullptr ? membership().options : *options;
  if (board().failed()) return board().failure(rank());
  if (membership().spans_hosts) TUTTI_CHECK_OK(control_.notifications.poll_before_call());
  auto started = caught([&] {
    return call.kind == Kind::collective ? collectives_.start(call, chosen) : messages_.start(call, chosen.timeout_ms);
  });
  if (started.ok()) return started;
  return control_.failures.reported(std::move(started).status());
}

Status HostCommunicator::await_ticket(std::uint64_t ticket) {
  // Earlier calls end in bounded time, even if they fail.
  for (auto served = served_.load(); served != ticket; served = served_.load()) served_.wait(served);
  return {};
}

// ---- Split and shrink ----

Result<std::vector<Rank>> HostCommunicator::agree_on_members(int color, int key) {
  std::vector<SplitArguments> arguments(ranks());
  arguments[rank()] = {color, key};
  Call gather;
  gather.collective = Collective::all_gather;
  gather.type = DataType::int8;
  gather.count = sizeof(SplitArguments);
  gather.input = reinterpret_cast<const std::byte*>(&arguments[rank()]);
  gather.output = reinterpret_cast<std::byte*>(arguments.data());
  // Options that the caller forces on collectives do not apply.
  CommunicatorOptions own = options();
  own.algorithm = own.protocol = own.compression = "";
  own.max_relative_error = 0;
  // Distinct from all calls of the user, so that it matches no all_gather of theirs.
  own.forced = kSplitCollective;
  if (auto prepared = collectives_.prepare(gather, own); prepared.ok()) {
    prepared.value()->record.collective = kSplitCollective;
  }
  TUTTI_CHECK_OK(run(gather, &own));
  return color < 0 ? std::vector<Rank>() : members_of(arguments, color);
}

// Reports a failure on this rank to all ranks of the parent first, then to ranks that may already have the
// sub-communicator.
Result<std::unique_ptr<Communicator>> HostCommunicator::split(int color, int key, const CommunicatorOptions& options) {
  auto members = caught([&] { return agree_on_members(color, key); });
  if (!members.ok())
    return control_.failures.reported(std::move(members).status()).during("gathering the colors of a split");
  if (members.value().empty()) return std::unique_ptr<Communicator>();
  Splitting splitting(control_, std::move(members).value(), options.init_timeout_ms);
  auto part = caught([&]() -> Result<std::unique_ptr<Communicator>> {
    Board shared = TUTTI_TRY(splitting.join());
    const std::string suffix = "color " + std::to_string(color);
    return std::unique_ptr<Communicator>(std::make_unique<HostCommunicator>(
        splitting.self(), splitting.take_mesh(), std::move(shared),
        options_of_child(options, membership().options.name, "a split", suffix), membership().spread()));
  });
  if (part.ok()) return part;
  Status reason = fail(std::move(part).status());
  splitting.give_up(reason);
  return reason;
}

// A failure leaves the parent unchanged.
Result<std::unique_ptr<Communicator>> HostCommunicator::shrink(const std::vector<Rank>& excluded,
                                                               const CommunicatorOptions& options) {
  store_relaxed(&aborted_, 0U);
  Shrinking shrinking(control_.membership.mesh, control_.membership.links,
                      {.self = rank(),
                       .ranks = ranks(),
                       .excluded = excluded,
                       .timeout_ms = options.init_timeout_ms,
                       .parent_abort = &aborted_,
                       .new_abort = options.abort,
                       .name = membership().name()});
  auto part = caught([&]() -> Result<std::unique_ptr<Communicator>> {
    TUTTI_CHECK_OK(shrinking.agree());
    Board shared = TUTTI_TRY(shrinking.share_board());
    const std::string suffix = std::to_string(shrinking.ranks()) + " of " + std::to_string(ranks()) + " ranks";
    return std::unique_ptr<Communicator>(std::make_unique<HostCommunicator>(
        shrinking.self(), shrinking.take_mesh(), std::move(shared),
        options_of_child(options, membership().options.name, "a shrink", suffix), membership().spread()));
  });
  if (part.ok()) {
    shrinking.conclude();
    return part;
  }
  Status reason = std::move(part).status();
  shrinking.give_up(reason);
  return reason;
}

Status HostCommunicator::pass(Rank to, int descriptor) {
  Frame frame;
  frame.kind = FrameKind::memory;
  return control_.membership.mesh.send(to, frame, descriptor);
}

Result<File> HostCommunicator::take_passed(Rank from) {
  const Deadline deadline = Deadline::after_ms(options().init_timeout_ms);
  ReceivedFrame passed = TUTTI_TRY(await_passed(control_, from, FrameKind::memory, deadline));
  return std::move(passed.file);
}

// ---- Ending ----

// Peers need nothing more from this rank. Lanes are in the reader's memory. Data sent before the goodbye of ~Mesh is
// read before it. A call ends only after peers have finished access to its buffers.
Status HostCommunicator::leave() {
  TUTTI_CHECK_OK(await_ticket(tickets_.load()));
  collectives_.save_tuning();
  if (board().failed()) return board().failure(rank());
  tagged_messages_.finish();
  store_release(&board().entry(rank()).left, 1U);
  board().wake_watchers();
  if (!membership().spans_hosts) return {};
  for (const Rank peer : membership().mesh.remote_ranks()) membership().mesh.connection(peer).send_credits();
  control_.notifications.report_calls(NotificationKind::leaving);
  return {};
}

// A lost message affects only its two ranks, which report it to their callers. No rank waits for it, so the
// communicator does not fail.
Status HostCommunicator::finalize() {
  TUTTI_CHECK_OK(leave());
  control_.current.begin_unrecorded(options().timeout_ms);  // The last call may have had another limit.
  for (Rank peer = 0; peer < ranks(); ++peer) {
    WaitState wait_state = {.watches_board = true};
    while (load_acquire(&board().entry(peer).left) == 0) TUTTI_CHECK_OK(waiter_.wait_for(peer, wait_state));
  }
  if (membership().spans_hosts) TUTTI_CHECK_OK(control_.matching.compare_last());
  return messages_.find_lost();
}

void HostCommunicator::abort() {
  store_release(&aborted_, 1U);
  control_.failures.abort();
}

}  // namespace tutti
