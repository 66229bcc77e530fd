#include "src/api/call_entry.h"
#include "src/api/unequal.h"

using tutti::Call;
using tutti::CallEntry;
using tutti::Collective;
using tutti::Kind;

namespace {

struct Buffers {
  const void* send;
  void* recv;
  size_t count;
};

static_assert(static_cast<int>(tutti::DataType::int8) == tutti_int8 &&
              static_cast<int>(tutti::DataType::float16) == tutti_float16 &&
              static_cast<int>(tutti::DataType::float32) == tutti_float32 &&
              static_cast<int>(tutti::DataType::float8_e5m2) == tutti_float8_e5m2 &&
              tutti_float8_e5m2 + 1 == tutti::kDataTypes);
static_assert(static_cast<int>(tutti::Reduction::sum) == tutti_sum &&
              static_cast<int>(tutti::Reduction::prod) == tutti_prod &&
              static_cast<int>(tutti::Reduction::min) == tutti_min &&
              static_cast<int>(tutti::Reduction::max) == tutti_max &&
              static_cast<int>(tutti::Reduction::avg) == tutti_avg);

[[gnu::always_inline]] inline Call call_of(Collective collective, const CallEntry& entry, Buffers buffers) {
  Call call;
  call.collective = collective;
  call.type = static_cast<tutti::DataType>(entry.type);
  call.reduction = static_cast<tutti::Reduction>(entry.reduction);
  call.root = static_cast<tutti::Rank>(entry.root);
  call.count = buffers.count;
  call.input = static_cast<const std::byte*>(buffers.send);
  call.output = static_cast<std::byte*>(buffers.recv);
  return call;
}

}  // namespace

extern "C" {

tutti_status tutti_all_reduce(const void* send, void* recv, size_t count, tutti_type type, tutti_reduction reduction,
                              tutti_comm comm, tutti_stream stream) {
  const CallEntry entry = {
      .function = "tutti_all_reduce", .comm = comm, .stream = stream, .type = type, .reduction = reduction};
  return tutti::enter(entry, call_of(Collective::all_reduce, entry, {send, recv, count}));
}

tutti_status tutti_all_gather(const void* send, void* recv, size_t count, tutti_type type, tutti_comm comm,
                              tutti_stream stream) {
  const CallEntry entry = {.function = "tutti_all_gather", .comm = comm, .stream = stream, .type = type};
  return tutti::enter(entry, call_of(Collective::all_gather, entry, {send, recv, count}));
}

tutti_status tutti_reduce_scatter(const void* send, void* recv, size_t count, tutti_type type,
                                  tutti_reduction reduction, tutti_comm comm, tutti_stream stream) {
  const CallEntry entry = {
      .function = "tutti_reduce_scatter", .comm = comm, .stream = stream, .type = type, .reduction = reduction};
  return tutti::enter(entry, call_of(Collective::reduce_scatter, entry, {send, recv, count}));
}

tutti_status tutti_broadcast(const void* send, void* recv, size_t count, tutti_type type, int root, tutti_comm comm,
                             tutti_stream stream) {
  const CallEntry entry = {.function = "tutti_broadcast", .comm = comm, .stream = stream, .type = type, .root = root};
  return tutti::enter(entry, call_of(Collective::broadcast, entry, {send, recv, count}));
}

tutti_status tutti_reduce(const void* send, void* recv, size_t count, tutti_type type, tutti_reduction reduction,
                          int root, tutti_comm comm, tutti_stream stream) {
  const CallEntry entry = {
      .function = "tutti_reduce", .comm = comm, .stream = stream, .type = type, .reduction = reduction, .root = root};
  return tutti::enter(entry, call_of(Collective::reduce, entry, {send, recv, count}));
}

tutti_status tutti_all_to_all(const void* send, void* recv, size_t count, tutti_type type, tutti_comm comm,
                              tutti_stream stream) {
  const CallEntry entry = {.function = "tutti_all_to_all", .comm = comm, .stream = stream, .type = type};
  return tutti::enter(entry, call_of(Collective::all_to_all, entry, {send, recv, count}));
}

tutti_status tutti_all_to_all_v(const void* send, const size_t* send_counts, const size_t* send_displacements,
                                void* recv, const size_t* recv_counts, const size_t* recv_displacements,
                                tutti_type type, tutti_comm comm, tutti_stream stream) {
  const CallEntry entry = {.function = "tutti_all_to_all_v", .comm = comm, .stream = stream, .type = type};
  const tutti::UnequalArrays arrays = {send_counts, send_displacements, recv_counts, recv_displacements};
  return tutti::enter_unequal(entry, call_of(Collective::all_to_all, entry, {send, recv, 0}), arrays);
}

tutti_status tutti_gather(const void* send, void* recv, size_t count, tutti_type type, int root, tutti_comm comm,
                          tutti_stream stream) {
  const CallEntry entry = {.function = "tutti_gather", .comm = comm, .stream = stream, .type = type, .root = root};
  return tutti::enter(entry, call_of(Collective::gather, entry, {send, recv, count}));
}

tutti_status tutti_scatter(const void* send, void* recv, size_t count, tutti_type type, int root, tutti_comm comm,
                           tutti_stream stream) {
  const CallEntry entry = {.function = "tutti_scatter", .comm = comm, .stream = stream, .type = type, .root = root};
  return tutti::enter(entry, call_of(Collective::scatter, entry, {send, recv, count}));
}

tutti_status tutti_send(const void* send, size_t count, tutti_type type, int peer, tutti_comm comm,
                        tutti_stream stream) {
  const CallEntry entry = {.function = "tutti_send", .comm = comm, .stream = stream, .type = type, .root = peer};
  Call call = call_of(Collective::broadcast, entry, {send, nullptr, count});
  call.kind = Kind::send;
  return tutti::enter(entry, call);
}

tutti_status tutti_recv(void* recv, size_t count, tutti_type type, int peer, tutti_comm comm, tutti_stream stream) {
  const CallEntry entry = {.function = "tutti_recv", .comm = comm, .stream = stream, .type = type, .root = peer};
  Call call = call_of(Collective::broadcast, entry, {nullptr, recv, count});
  call.kind = Kind::recv;
  return tutti::enter(entry, call);
}

}  // extern "C"
