// Autotuning of calls: the choice for each call, and the exchange of results between ranks.
#include "src/base/caught.h"
#include "src/base/clock.h"
#include "src/communicator/host/autotuning_operation.h"
#include "src/communicator/planning/planning.h"

namespace tutti {
namespace {

// Hashes of options for internal calls. They match neither calls of the user nor each other.
constexpr std::uint32_t kRecalling = 0x74756e65;
constexpr std::uint32_t kSumming = 0x74756e66;

CommunicatorOptions options_of_aside(const CommunicatorOptions& options, std::uint32_t form) {
  CommunicatorOptions own = options;
  own.tune = Tune::off;
  own.forced = form;
  return own;
}

}  // namespace

bool HostCommunicator::autotunes(const Call& call, const CommunicatorOptions& options) const {
  return membership_.ranks > 1 && !membership_.options.has_plugin() && is_tunable(call, options) &&
         compression_request(call, options, membership_.ranks).compression == CompressionFormat::none;
}

Result<std::unique_ptr<PreparedCall>> HostCommunicator::prepare_autotuning(const Call& call,
                                                                           const CommunicatorOptions& options) {
  Query query = TUTTI_TRY(planner_.query_for(call, options));
  const std::vector<Candidate> predicted = TUTTI_TRY(candidates(query));
  // Measurements do not decide about compression. With an error bound, the prediction does.
  if (predicted.empty() || predicted.front().choice.compression != CompressionFormat::none)
    return planner_.prepare(call, options, nullptr);
  query.mapped = !membership_.spans_hosts;
  std::vector<Candidate> all = TUTTI_TRY(candidates(query));
  std::erase_if(all,
                [](const Candidate& candidate) { return candidate.choice.compression != CompressionFormat::none; });
  Autotuning::Class& tuned = autotuning_.class_of(query, std::move(all));
  const GivenChoices next = {tuned.through_lanes(), tuned.by_mapped()};
  if (tuned.settled()) return planner_.prepare(call, options, &next);
  auto being_tuned = std::make_unique<PreparedCall>();
  being_tuned->tuned = &tuned;
  return being_tuned;
}

// Once the class has settled, its result replaces the slot, and calls of this shape run like other calls.
Result<PreparedCall*> HostCommunicator::next_tried(std::unique_ptr<PreparedCall>& slot, const Call& call,
                                                   const CommunicatorOptions& options) {
  Autotuning::Class& tuned = *slot->tuned;
  const GivenChoices next = {tuned.through_lanes(), tuned.by_mapped()};
  std::unique_ptr<PreparedCall>& tried = slot->tried[next.names()];
  if (tried == nullptr) {
    tried = TUTTI_TRY(planner_.prepare(call, options, &next));
    tried->key = slot->key;
    tried->tuned = &tuned;
  }
  if (latest_ == slot.get()) latest_ = nullptr;
  show_ran(*tried);
  if (!tuned.settled()) {
    latest_ = nullptr;
    return tried.get();
  }
  std::unique_ptr<PreparedCall> kept = std::move(tried);
  kept->tuned = nullptr;
  slot = std::move(kept);
  latest_ = slot.get();
  return latest_;
}

HostCommunicator::InternalCollective HostCommunicator::recalling(const Call& call, const CommunicatorOptions& options) {
  autotuning_.kept().read();
  const CommunicatorOptions own = options_of_aside(options, kRecalling);
  InternalCollective internal = {{}, own, record_of(call, own)};
  internal.call.collective = Collective::broadcast;
  internal.call.type = DataType::int8;
  const std::span<std::byte> table = std::as_writable_bytes(autotuning_.kept().table());
  internal.call.count = table.size();
  internal.call.input = internal.call.output = table.data();
  return internal;
}

HostCommunicator::InternalCollective HostCommunicator::summing(const Call& call, const CommunicatorOptions& options,
                                                               const Ended& ended,
                                                               std::vector<std::uint64_t>& sums_ns) const {
  sums_ns = ended.tuning->autotuner.seen();
  const Autotuning::Class& tuned = *ended.tuned;
  const std::uint32_t form = kSumming + static_cast<std::uint32_t>(tuned.collective) * 256 + tuned.size_class;
  const CommunicatorOptions own = options_of_aside(options, form);
  InternalCollective internal = {{}, own, record_of(call, own)};
  internal.call.type = DataType::uint64;
  internal.call.count = sums_ns.size();
  internal.call.input = internal.call.output = reinterpret_cast<std::byte*>(sums_ns.data());
  return internal;
}

// Uses lanes, since a record that stands for another call does not contain buffers.
Result<PreparedCall*> HostCommunicator::prepare_internal(const InternalCollective& internal) {
  PreparedCall* prepared = TUTTI_TRY(prepare_call(internal.call, internal.options));
  prepared->mapped_algorithm = nullptr;
  prepared->record = internal.record;
  return prepared;
}

void HostCommunicator::conclude(const Ended& ended, const std::vector<std::uint64_t>& sums_ns) {
  ended.tuned->conclude(*ended.tuning, sums_ns, membership_.ranks);
  autotuning_.report(*ended.tuned, *ended.tuning);
}

Status HostCommunicator::run_autotuning(const Call& call, const CommunicatorOptions& options) {
  if (autotuning_.kept().unreported()) {
    const InternalCollective internal = recalling(call, options);
    PreparedCall* prepared = TUTTI_TRY(prepare_internal(internal));
    TUTTI_CHECK_OK(run_prepared(*prepared, internal.call, internal.options));
    autotuning_.kept().reported();
  }
  PreparedCall* prepared = TUTTI_TRY(prepare_call(call, options));
  Autotuning::Class* tuned = prepared->tuned;
  const std::int64_t began_ns = now_ns();
  TUTTI_CHECK_OK(run_prepared(*prepared, call, options));
  if (tuned == nullptr) return {};
  const Ended ended = {tuned, tuned->took(prepared->ran_mapped, now_ns() - began_ns)};
  if (ended.tuning == nullptr) return {};
  std::vector<std::uint64_t> sums_ns;
  const InternalCollective internal = summing(call, options, ended, sums_ns);
  prepared = TUTTI_TRY(prepare_internal(internal));
  TUTTI_CHECK_OK(run_prepared(*prepared, internal.call, internal.options));
  conclude(ended, sums_ns);
  return {};
}

// ---- Autotuned calls beside other operations ----

Status AutotuningOperation::begin() {
  if (!owner_.autotuning_.kept().unreported()) return begin_call();
  const HostCommunicator::InternalCollective internal = owner_.recalling(call_, options_);
  PreparedCall* prepared = TUTTI_TRY(owner_.prepare_internal(internal));
  running_ = std::make_unique<CollectiveOperation>(owner_, *prepared, internal.call, internal.options);
  return {};
}

Status AutotuningOperation::begin_call() {
  part_ = Part::call;
  prepared_ = TUTTI_TRY(owner_.prepare_call(call_, options_));
  ended_.tuned = prepared_->tuned;
  began_ns_ = now_ns();
  running_ = std::make_unique<CollectiveOperation>(owner_, *prepared_, call_, options_);
  return {};
}

Result<bool> AutotuningOperation::advance() {
  for (;;) {
    const bool done = TUTTI_TRY(running_->advance());
    if (!done) return false;
    Result<bool> ended = caught([this] { return next(); });
    if (!ended.ok()) return owner_.control_.failures.reported(std::move(ended).status());
    if (ended.value()) return true;
  }
}

Result<bool> AutotuningOperation::next() {
  running_.reset();
  switch (part_) {
    case Part::recall:
      owner_.autotuning_.kept().reported();
      TUTTI_CHECK_OK(begin_call());
      return false;
    case Part::call: {
      if (ended_.tuned == nullptr) return true;
      ended_.tuning = ended_.tuned->took(prepared_->ran_mapped, now_ns() - began_ns_);
      if (ended_.tuning == nullptr) return true;
      const HostCommunicator::InternalCollective internal = owner_.summing(call_, options_, ended_, sums_ns_);
      PreparedCall* prepared = TUTTI_TRY(owner_.prepare_internal(internal));
      running_ = std::make_unique<CollectiveOperation>(owner_, *prepared, internal.call, internal.options);
      part_ = Part::result;
      return false;
    }
    case Part::result: owner_.conclude(ended_, sums_ns_); return true;
  }
  return true;
}

}  // namespace tutti
