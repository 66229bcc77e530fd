#include "src/communicator/host/host_collectives.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "src/base/clock.h"
#include "src/base/no_cancellation.h"
#include "src/communicator/host/autotuning_operation.h"
#include "src/communicator/host/collective_operation.h"

namespace tutti {

Status HostCollectives::run(const Call& call, const CommunicatorOptions& options) {
  PreparedCall* prepared = parts_.calls.latest();
  if (prepared == nullptr || !prepared->serves(call, options.forced)) {
    if (parts_.calls.autotunes(call, options)) {
      const NoCancellation until_return;
      return run_autotuned(call, options);
    }
    prepared = TUTTI_TRY(parts_.calls.prepare(call, options));
  }
  return run_prepared(*prepared, call, options);
}

Status HostCollectives::run_prepared(PreparedCall& prepared, const Call& call, const CommunicatorOptions& options) {
  if (!prepared.moves.empty()) return parts_.runner.run_brief(prepared, call, options);
  const NoCancellation until_return;
  // The usual case: lanes are connected.
  if (prepared.interpreter && prepared.mapped_algorithm == nullptr)
    return parts_.runner.run_at_once(prepared, call, options);
  CollectiveOperation operation(parts_, prepared, call, options);
  return operation.complete();
}

Result<std::unique_ptr<Operation>> HostCollectives::start(const Call& call, const CommunicatorOptions& options) {
  if (parts_.calls.autotunes(call, options)) {
    auto autotuned = std::make_unique<AutotuningOperation>(parts_, call, options);
    TUTTI_CHECK_OK(autotuned->begin());
    return std::unique_ptr<Operation>(std::move(autotuned));
  }
  PreparedCall* prepared = TUTTI_TRY(parts_.calls.prepare(call, options));
  return std::unique_ptr<Operation>(std::make_unique<CollectiveOperation>(parts_, *prepared, call, options));
}

CompressionStatistics HostCollectives::compression_statistics() const {
  const Membership& membership = parts_.control.membership;
  return parts_.statistics.compression(membership.board.last(membership.rank));
}

// Like AutotuningOperation, but waits for each step.
Status HostCollectives::run_autotuned(const Call& call, const CommunicatorOptions& options) {
  AutotuningExchange& exchange = parts_.exchange;
  if (exchange.must_recall()) {
    TUTTI_CHECK_OK(run_internal(exchange.recall(call, options)));
    exchange.end_recall();
  }
  PreparedCall* prepared = TUTTI_TRY(parts_.calls.prepare(call, options));
  Autotuning::Class* tuned = prepared->tuned;
  const std::int64_t began_ns = now_ns();
  TUTTI_CHECK_OK(run_prepared(*prepared, call, options));
  if (tuned == nullptr) return {};
  const EndedStage ended = {tuned, tuned->took(prepared->ran_mapped, now_ns() - began_ns)};
  if (ended.tuning == nullptr) return {};
  std::vector<std::uint64_t> sums_ns;
  TUTTI_CHECK_OK(run_internal(exchange.sum(call, options, ended, sums_ns)));
  exchange.end_sum(ended, sums_ns);
  return {};
}

Status HostCollectives::run_internal(const InternalCollective& internal) {
  PreparedCall* prepared = TUTTI_TRY(parts_.exchange.prepare(internal));
  return run_prepared(*prepared, internal.call, internal.options);
}

}  // namespace tutti
