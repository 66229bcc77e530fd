#include "src/api/call_entry.h"
#include "src/api/unequal.h"

using tutti::Collective;
using tutti::Kind;

namespace {

static_assert(static_cast<int>(tutti::DataType::int8) == tutti_int8 &&
              static_cast<int>(tutti::DataType::float16) == tutti_float16 &&
              static_cast<int>(tutti::DataType::float32) == tutti_float32 &&
              static_cast<int>(tutti::DataType::float8_e5m2) == tutti_float8_e5m2 &&
              static_cast<int>(tutti::DataType::boolean) == tutti_bool &&
              static_cast<int>(tutti::DataType::complex128) == tutti_complex128 &&
              tutti_complex128 + 1 == tutti::kDataTypes);
static_assert(static_cast<int>(tutti::Reduction::sum) == tutti_sum &&
              static_cast<int>(tutti::Reduction::prod) == tutti_prod &&
              static_cast<int>(tutti::Reduction::min) == tutti_min &&
              static_cast<int>(tutti::Reduction::max) == tutti_max &&
              static_cast<int>(tutti::Reduction::avg) == tutti_avg &&
              static_cast<int>(tutti::Reduction::band) == tutti_band &&
              static_cast<int>(tutti::Reduction::bxor) == tutti_bxor);

}  // namespace

extern "C" {

tutti_status tutti_all_reduce(const void* send, void* recv, size_t count, tutti_type type, tutti_reduction reduction,
                              tutti_comm comm, tutti_stream stream) {
  return tutti::enter({.function = "tutti_all_reduce",
                       .collective = Collective::all_reduce,
                       .send = send,
                       .recv = recv,
                       .count = count,
                       .type = type,
                       .reduction = reduction,
                       .comm = comm,
                       .stream = stream});
}

tutti_status tutti_all_gather(const void* send, void* recv, size_t count, tutti_type type, tutti_comm comm,
                              tutti_stream stream) {
  return tutti::enter({.function = "tutti_all_gather",
                       .collective = Collective::all_gather,
                       .send = send,
                       .recv = recv,
                       .count = count,
                       .type = type,
                       .comm = comm,
                       .stream = stream});
}

tutti_status tutti_reduce_scatter(const void* send, void* recv, size_t count, tutti_type type,
                                  tutti_reduction reduction, tutti_comm comm, tutti_stream stream) {
  return tutti::enter({.function = "tutti_reduce_scatter",
                       .collective = Collective::reduce_scatter,
                       .send = send,
                       .recv = recv,
                       .count = count,
                       .type = type,
                       .reduction = reduction,
                       .comm = comm,
                       .stream = stream});
}

tutti_status tutti_broadcast(const void* send, void* recv, size_t count, tutti_type type, int root, tutti_comm comm,
                             tutti_stream stream) {
  return tutti::enter({.function = "tutti_broadcast",
                       .collective = Collective::broadcast,
                       .send = send,
                       .recv = recv,
                       .count = count,
                       .type = type,
                       .root = root,
                       .comm = comm,
                       .stream = stream});
}

tutti_status tutti_reduce(const void* send, void* recv, size_t count, tutti_type type, tutti_reduction reduction,
                          int root, tutti_comm comm, tutti_stream stream) {
  return tutti::enter({.function = "tutti_reduce",
                       .collective = Collective::reduce,
                       .send = send,
                       .recv = recv,
                       .count = count,
                       .type = type,
                       .reduction = reduction,
                       .root = root,
                       .comm = comm,
                       .stream = stream});
}

tutti_status tutti_all_to_all(const void* send, void* recv, size_t count, tutti_type type, tutti_comm comm,
                              tutti_stream stream) {
  return tutti::enter({.function = "tutti_all_to_all",
                       .collective = Collective::all_to_all,
                       .send = send,
                       .recv = recv,
                       .count = count,
                       .type = type,
                       .comm = comm,
                       .stream = stream});
}

tutti_status tutti_all_to_all_v(const void* send, const size_t* send_counts, const size_t* send_displacements,
                                void* recv, const size_t* recv_counts, const size_t* recv_displacements,
                                tutti_type type, tutti_comm comm, tutti_stream stream) {
  const tutti::UnequalArrays arrays = {send_counts, send_displacements, recv_counts, recv_displacements};
  return tutti::enter_unequal({.function = "tutti_all_to_all_v",
                               .kind = Kind::all_to_all_v,
                               .send = send,
                               .recv = recv,
                               .type = type,
                               .comm = comm,
                               .stream = stream},
                              arrays);
}

tutti_status tutti_gather(const void* send, void* recv, size_t count, tutti_type type, int root, tutti_comm comm,
                          tutti_stream stream) {
  return tutti::enter({.function = "tutti_gather",
                       .collective = Collective::gather,
                       .send = send,
                       .recv = recv,
                       .count = count,
                       .type = type,
                       .root = root,
                       .comm = comm,
                       .stream = stream});
}

tutti_status tutti_scatter(const void* send, void* recv, size_t count, tutti_type type, int root, tutti_comm comm,
                           tutti_stream stream) {
  return tutti::enter({.function = "tutti_scatter",
                       .collective = Collective::scatter,
                       .send = send,
                       .recv = recv,
                       .count = count,
                       .type = type,
                       .root = root,
                       .comm = comm,
                       .stream = stream});
}

tutti_status tutti_send(const void* send, size_t count, tutti_type type, int peer, tutti_comm comm,
                        tutti_stream stream) {
  return tutti::enter({.function = "tutti_send",
                       .kind = Kind::send,
                       .send = send,
                       .count = count,
                       .type = type,
                       .root = peer,
                       .comm = comm,
                       .stream = stream});
}

tutti_status tutti_recv(void* recv, size_t count, tutti_type type, int peer, tutti_comm comm, tutti_stream stream) {
  return tutti::enter({.function = "tutti_recv",
                       .kind = Kind::recv,
                       .recv = recv,
                       .count = count,
                       .type = type,
                       .root = peer,
                       .comm = comm,
                       .stream = stream});
}

}  // extern "C"
