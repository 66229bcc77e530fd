#include "src/communicator/host/autotuning_exchange.h"

#include <span>

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

InternalCollective AutotuningExchange::recall(const Call& call, const CommunicatorOptions& options) {
  SavedTuning& kept = calls_.autotuning().kept();
  kept.read();
  const CommunicatorOptions own = options_of_aside(options, kRecalling);
  InternalCollective internal = {{}, own, record_of(call, own)};
  internal.call.collective = Collective::broadcast;
  internal.call.type = DataType::int8;
  const std::span<std::byte> table = std::as_writable_bytes(kept.table());
  internal.call.count = table.size();
  internal.call.input = internal.call.output = table.data();
  return internal;
}

InternalCollective AutotuningExchange::sum(const Call& call, const CommunicatorOptions& options,
                                           const EndedStage& ended, std::vector<std::uint64_t>& sums_ns) const {
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

void AutotuningExchange::end_sum(const EndedStage& ended, const std::vector<std::uint64_t>& sums_ns) {
  ended.tuned->conclude(*ended.tuning, sums_ns, membership_.ranks);
  calls_.autotuning().report(*ended.tuned, *ended.tuning);
}

// Uses lanes, since a record that stands for another call does not contain buffers.
Result<PreparedCall*> AutotuningExchange::prepare(const InternalCollective& internal) {
  PreparedCall* prepared = TUTTI_TRY(calls_.prepare(internal.call, internal.options));
  prepared->mapped_algorithm = nullptr;
  prepared->record = internal.record;
  return prepared;
}

}  // namespace tutti
