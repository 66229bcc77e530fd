#include "src/nccl/calls.h"

#include <algorithm>
#include <functional>

#include "src/base/types.h"
#include "src/nccl/memory.h"

namespace tutti::nccl {
namespace {

constexpr tutti_type kTypes[ncclNumTypes] = {tutti_int8,    tutti_uint8,    tutti_int32,       tutti_uint32,
                                             tutti_int64,   tutti_uint64,   tutti_float16,     tutti_float32,
                                             tutti_float64, tutti_bfloat16, tutti_float8_e4m3, tutti_float8_e5m2};
constexpr tutti_reduction kReductions[ncclNumOps] = {tutti_sum, tutti_prod, tutti_max, tutti_min, tutti_avg};

constexpr std::size_t kMaxElements = std::size_t{1} << 40;  // Maximum count of tutti.h.

bool reduces(Kind kind) { return kind == Kind::all_reduce || kind == Kind::reduce_scatter || kind == Kind::reduce; }

bool is_message(Kind kind) { return kind == Kind::send || kind == Kind::recv; }

bool reads(const Call& call) {
  if (call.kind == Kind::broadcast || call.kind == Kind::scatter)
    return call.root == call.communicator->rank_config.rank;
  return call.kind != Kind::recv;
}

bool writes(const Call& call) {
  if (call.kind == Kind::reduce || call.kind == Kind::gather) return call.root == call.communicator->rank_config.rank;
  return call.kind != Kind::send;
}

Outcome check_reduction(Call& call) {
  if (!reduces(call.kind) || (call.reduction >= 0 && call.reduction < ncclNumOps)) return {};
  const auto& made = call.communicator->reductions;
  const auto found =
      std::find_if(made.begin(), made.end(), [&](const MadeReduction& one) { return one.number == call.reduction; });
  if (found == made.end()) {
    return invalid_argument("invalid op " + std::to_string(call.reduction) +
                            "; pass ncclSum ... ncclAvg, or one created for this communicator and not destroyed");
  }
  if (found->type != call.type) {
    return invalid_argument("op was created for datatype " + std::to_string(found->type) +
                            ", but the call has datatype " + std::to_string(call.type));
  }
  call.made = *found;
  return {};
}

Outcome check_values(const Call& call) {
  const RankConfig& rank_config = call.communicator->rank_config;
  if (call.type < 0 || call.type >= ncclNumTypes) {
    return invalid_argument("invalid datatype " + std::to_string(call.type) + "; pass ncclInt8 ... ncclFloat8e5m2");
  }
  if (call.root < 0 || call.root >= rank_config.ranks) {
    return invalid_argument(std::string(is_message(call.kind) ? "peer " : "root ") + std::to_string(call.root) +
                            " is out of range; ranks are 0.." + std::to_string(rank_config.ranks - 1));
  }
  if (call.count == 0) return {};
  if (call.count > kMaxElements) {
    return invalid_argument("count is " + std::to_string(call.count) +
                            ", more elements than fit in memory (a negative number?)");
  }
  const char* null = nullptr;
  if (call.send == nullptr && reads(call)) null = "sendbuff";
  if (call.recv == nullptr && writes(call)) null = "recvbuff";
  if (null == nullptr) return {};
  return invalid_argument(std::string(null) + " is NULL but count is " + std::to_string(call.count));
}

tutti_status run(const Call& call, tutti_reduction reduction) {
  const tutti_comm comm = handle_for(call);
  const tutti_stream stream = stream_for(*call.communicator, call.stream);
  const tutti_type type = type_of(call.type);
  const void* send = call.send;
  void* recv = call.recv;
  const std::size_t count = call.count;
  switch (call.kind) {
    case Kind::all_reduce: return tutti_all_reduce(send, recv, count, type, reduction, comm, stream);
    case Kind::all_gather: return tutti_all_gather(send, recv, count, type, comm, stream);
    case Kind::reduce_scatter: return tutti_reduce_scatter(send, recv, count, type, reduction, comm, stream);
    case Kind::broadcast: return tutti_broadcast(send, recv, count, type, call.root, comm, stream);
    case Kind::reduce: return tutti_reduce(send, recv, count, type, reduction, call.root, comm, stream);
    case Kind::all_to_all: return tutti_all_to_all(send, recv, count, type, comm, stream);
    case Kind::gather: return tutti_gather(send, recv, count, type, call.root, comm, stream);
    case Kind::scatter: return tutti_scatter(send, recv, count, type, call.root, comm, stream);
    case Kind::send: return tutti_send(send, count, type, call.root, comm, stream);
    case Kind::recv: return tutti_recv(recv, count, type, call.root, comm, stream);
  }
  return tutti_internal_error;
}

// Reduction of a call in tutti.h. A pre-multiplied sum is created anew for each call, because its scalar may change.
class Reduction {
 public:
  Reduction() = default;
  ~Reduction() {
    if (comm_ != nullptr) tutti_reduction_destroy(number_, comm_);
  }
  Reduction(const Reduction&) = delete;
  Reduction& operator=(const Reduction&) = delete;

  tutti_reduction number() const { return number_; }

  Outcome make(const Call& call) {
    if (!call.made) {
      if (reduces(call.kind)) number_ = kReductions[call.reduction];
      return {};
    }
    const MadeReduction& made = *call.made;
    const tutti_comm comm = call.communicator->comm();
    const tutti_type type = type_of(call.type);
    TUTTI_NCCL_CHECK(outcome_of(made.memory == nullptr
                                    ? tutti_reduction_create_pre_mul_sum(&made.scalar, type, comm, &number_)
                                    : tutti_reduction_create_pre_mul_sum_at(made.memory, type, comm, &number_)));
    comm_ = comm;
    return {};
  }

 private:
  tutti_reduction number_ = tutti_sum;
  tutti_comm comm_ = nullptr;  // Communicator of a created reduction; null: none.
};

}  // namespace

tutti_comm handle_for(const Call& call) {
  if (call.handle != nullptr) return call.handle;
  const Communicator& communicator = *call.communicator;
  const bool compressed = communicator.compressed() != nullptr && communicator.settings.compression.takes(call);
  return compressed ? communicator.compressed() : communicator.comm();
}

tutti_type type_of(ncclDataType_t type) { return kTypes[type]; }

std::size_t size_of(ncclDataType_t type) { return tutti::size_of(static_cast<DataType>(type_of(type))); }

Outcome check(Call& call) {
  TUTTI_NCCL_CHECK(check_values(call));
  return check_reduction(call);
}

Outcome launch(const Call& call) {
  Reduction reduction;
  TUTTI_NCCL_CHECK(reduction.make(call));
  return outcome_of(run(call, reduction.number()));
}

namespace {

// Runs the calls in a group of tutti.h, which `end` ends.
Outcome launch_until(const std::vector<Call>& calls, const std::function<tutti_status()>& end) {
  // Created before the first call: a failure within the open group would break its communicators.
  std::vector<Reduction> reductions(calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) TUTTI_NCCL_CHECK(reductions[i].make(calls[i]));
  TUTTI_NCCL_CHECK(outcome_of(tutti_group_start()));
  Outcome first;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    Outcome one = caught([&] { return outcome_of(run(calls[i], reductions[i].number())); });
    if (!first.failed()) first = std::move(one);
  }
  Outcome ended = outcome_of(end());  // Also reports failures of the calls.
  return first.failed() ? first : ended;
}

}  // namespace

Outcome launch(const std::vector<Call>& calls) {
  if (calls.empty()) return {};
  if (calls.size() == 1) return launch(calls.front());
  return launch_until(calls, tutti_group_end);
}

Outcome simulate(const std::vector<Call>& calls, double& time_us) {
  return launch_until(calls, [&] { return tutti_group_simulate_end(&time_us); });
}

}  // namespace tutti::nccl
