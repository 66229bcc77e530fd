#include "src/communicator/communicator.h"

#include <atomic>
#include <memory>
#include <utility>

#include "src/base/atomic.h"
#include "src/base/caught.h"
#include "src/communicator/host/host_backend.h"
#include "src/communicator/host/tagged_messages.h"
#include "src/communicator/membership/control_plane.h"
#include "src/communicator/shrink.h"
#include "src/communicator/split.h"

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

// Backends that are never destroyed. The list keeps them reachable. Not guarded by a mutex, which a child of fork() may
// find locked.
struct KeptBackend {
  std::unique_ptr<Backend> backend;
  KeptBackend* next;
};
constinit std::atomic<KeptBackend*> kept = nullptr;

void keep(std::unique_ptr<Backend> backend) {
  auto* added = new KeptBackend{std::move(backend), kept};
  while (!kept.compare_exchange_weak(added->next, added)) continue;
}

}  // namespace

Communicator::Communicator(std::shared_ptr<ControlPlane> control, std::unique_ptr<BlockingBackend> host)
    : control_(std::move(control)),
      options_(control_->membership.options),
      rank_(control_->membership.rank),
      ranks_(control_->membership.ranks),
      host_(host != nullptr ? std::move(host) : std::make_unique<HostBackend>(*control_)),
      calls_(host_.get()),
      tagged_messages_(std::make_unique<TaggedMessages>(*control_)) {}

// A backend that keeps the control plane may still use the connections.
Communicator::~Communicator() {
  if (device_ != nullptr && !device_->close()) keep(std::move(device_));
  device_.reset();
  tagged_messages_->close();
  if (control_.use_count() == 1) control_->membership.mesh.leave();
}

bool Communicator::on_one_host() const { return !control_->membership.spans_hosts; }
const Mesh& Communicator::mesh() const { return control_->membership.mesh; }
const Board& Communicator::board() const { return control_->membership.board; }

void Communicator::use_device(std::unique_ptr<Backend> device) {
  device_ = std::move(device);
  calls_ = device_.get();
}

// ---- Calls ----

// Earlier calls end in bounded time, even if they fail.
void Communicator::await_ticket(std::uint64_t ticket) const {
  for (auto served = served_.load(); served < ticket; served = served_.load()) served_.wait(served);
}

void Communicator::finish_ticket() {
  served_.fetch_add(1);
  served_.notify_all();
}

Result<std::shared_ptr<MessageEndpoint>> Communicator::messages() { return tagged_messages_->endpoint(); }

// ---- Split and shrink ----

Result<std::vector<Rank>> Communicator::agree_on_members(int color, int key) {
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
  own.agreement_hash = kSplitCollective;
  TUTTI_CHECK_OK(run(gather, &own));
  return color < 0 ? std::vector<Rank>() : members_of(arguments, color);
}

// Reports a failure on this rank to all ranks of the parent first, then to ranks that may already have the
// sub-communicator.
Result<std::unique_ptr<Communicator>> Communicator::split_on_host(int color, int key,
                                                                  const CommunicatorOptions& options) {
  auto members = caught([&] { return agree_on_members(color, key); });
  if (!members.ok())
    return control_->failures.reported(std::move(members).status()).during("gathering the colors of a split");
  if (members.value().empty()) return std::unique_ptr<Communicator>();
  Splitting splitting(*control_, std::move(members).value(), options.init_timeout_ms);
  auto part = caught([&]() -> Result<std::unique_ptr<Communicator>> {
    Board shared = TUTTI_TRY(splitting.join());
    const std::string suffix = "color " + std::to_string(color);
    return std::make_unique<Communicator>(std::make_shared<ControlPlane>(
        splitting.self(), splitting.take_mesh(), std::move(shared),
        options_of_child(options, options_.name, "a split", suffix), control_->membership.spread()));
  });
  if (part.ok()) return part;
  Status reason = fail(std::move(part).status());
  splitting.give_up(reason);
  return reason;
}

// A failure leaves the parent unchanged.
Result<std::unique_ptr<Communicator>> Communicator::shrink_on_host(const std::vector<Rank>& excluded,
                                                                   const CommunicatorOptions& options) {
  store_relaxed(&aborted_, 0U);
  Shrinking shrinking(control_->membership.mesh, control_->membership.lanes,
                      {.self = rank(),
                       .ranks = ranks(),
                       .excluded = excluded,
                       .timeout_ms = options.init_timeout_ms,
                       .parent_abort = &aborted_,
                       .new_abort = options.abort,
                       .name = control_->membership.name()});
  auto part = caught([&]() -> Result<std::unique_ptr<Communicator>> {
    TUTTI_CHECK_OK(shrinking.agree());
    Board shared = TUTTI_TRY(shrinking.share_board());
    const std::string suffix = std::to_string(shrinking.ranks()) + " of " + std::to_string(ranks()) + " ranks";
    return std::make_unique<Communicator>(std::make_shared<ControlPlane>(
        shrinking.self(), shrinking.take_mesh(), std::move(shared),
        options_of_child(options, options_.name, "a shrink", suffix), control_->membership.spread()));
  });
  if (part.ok()) {
    shrinking.conclude();
    return part;
  }
  Status reason = std::move(part).status();
  shrinking.give_up(reason);
  return reason;
}

Result<std::unique_ptr<Communicator>> Communicator::split(int color, int key, const CommunicatorOptions& options) {
  return extended(split_on_host(color, key, options));
}

Result<std::unique_ptr<Communicator>> Communicator::shrink(const std::vector<Rank>& excluded,
                                                           const CommunicatorOptions& options) {
  return extended(shrink_on_host(excluded, options));
}

Result<std::unique_ptr<Communicator>> Communicator::extended(Result<std::unique_ptr<Communicator>> child) {
  Status status = calls_->extend_to(child.ok() ? child.value().get() : nullptr);
  if (child.ok() && !status.ok()) return status;
  return child;
}

Status Communicator::pass(Rank to, int descriptor) {
  return control_->membership.mesh.send(to, {.kind = FrameKind::memory}, descriptor);
}

Result<File> Communicator::take_passed(Rank from) {
  const Deadline deadline = Deadline::after_ms(options().init_timeout_ms);
  ReceivedFrame passed = TUTTI_TRY(await_passed(*control_, from, FrameKind::memory, deadline));
  return std::move(passed.file);
}

// ---- Ending ----

// Peers need nothing more from this rank. Lanes are in the reader's memory. Data sent before the goodbye of ~Mesh is
// read before it. A call ends only after peers have finished access to its buffers.
Status Communicator::leave() {
  if (device_ != nullptr) TUTTI_CHECK_OK(device_->finish());
  await_ticket(tickets_.load());
  TUTTI_CHECK_OK(host_->finish());
  Membership& membership = control_->membership;
  if (membership.board.failed()) return membership.board.failure(rank_);
  tagged_messages_->finish();
  store_release(&membership.board.entry(rank_).left, 1U);
  membership.board.wake_watchers();
  if (!membership.spans_hosts) return {};
  for (const Rank peer : membership.mesh.remote_ranks()) membership.mesh.connection(peer).send_credits();
  control_->notifications.report_calls(NotificationKind::leaving);
  return {};
}

Status Communicator::finalize() {
  TUTTI_CHECK_OK(leave());
  return host_->await_leaving();
}

void Communicator::abort() {
  store_release(&aborted_, 1U);
  control_->failures.abort();
}

Status Communicator::fail(Status status) { return control_->failures.fail(std::move(status)); }

Status Communicator::call_off(const Status& reason) { return control_->failures.call_off(reason); }

void Communicator::report_rejection(RejectedCall call, const std::string& text) {
  control_->notifications.report_rejection(call, text);
}

}  // namespace tutti
