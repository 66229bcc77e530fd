#include "perf/tool/rank.h"

#include <algorithm>
#include <cstdio>

#include "perf/tool/fail.h"

namespace perf {

Rank::Rank(const Collective& collective, std::unique_ptr<MemoryBackend> backend, tutti_comm comm)
    : collective_(collective), backend_(std::move(backend)), comm_(comm) {
  require(tutti_comm_rank(comm, &at_.rank), "tutti_comm_rank");
  require(tutti_comm_ranks(comm, &at_.ranks), "tutti_comm_ranks");
}

void Rank::allocate(std::size_t bytes) {
  send_ = backend_->allocate(bytes);
  recv_ = backend_->allocate(bytes);
  bytes_ = bytes;
}

void Rank::register_windows() {
  void* const buffers[] = {send_, recv_};
  for (int i = 0; i < 2; ++i) {
    require(tutti_window_register(buffers[i], bytes_, TUTTI_WINDOW_SYMMETRIC, comm_, &windows_[i]),
            "tutti_window_register");
    if (windows_[i] == nullptr && at_.rank == 0)
      std::fprintf(stderr, "%s: the ranks cannot access each other's buffers, so the buffers are not windows\n",
                   program_name());
  }
}

void Rank::deregister_windows() {
  for (tutti_window& window : windows_) {
    require(tutti_window_deregister(window, comm_), "tutti_window_deregister");
    window = nullptr;
  }
}

void Rank::free() {
  for (void** buffer : {&send_, &recv_}) {
    if (*buffer != nullptr) backend_->free(*buffer);
    *buffer = nullptr;
  }
}

Call Rank::call_of(const Case& one) {
  at_.root = one.root;
  const std::size_t block_bytes = one.count * one.element.size;
  char* const source = static_cast<char*>(one.in_place ? recv_ : send_);
  Call call;
  call.send = source + (one.in_place ? collective_.send_offset(at_) * block_bytes : 0);
  call.recv = static_cast<char*>(recv_) + (one.in_place ? collective_.recv_offset(at_) * block_bytes : 0);
  call.count = one.count;
  call.type = one.element.type;
  call.reduction = one.operation.reduction;
  call.root = one.root;
  call.comm = comm_;
  call.stream = backend_->stream();
  if (one.operation.is_mulsum) {
    const Wide scalar = {bits_of(one.element, Pattern::scalar(at_.rank)), 0};
    require(tutti_reduction_create_pre_mul_sum(&scalar, call.type, comm_, &call.reduction), "creating the reduction");
  }
  return call;
}

Call Rank::on_part(const Case& one, Call call, std::uint32_t number) const {
  const std::size_t blocks = collective_.divides() ? static_cast<std::size_t>(at_.ranks) : 1;
  const std::size_t part_bytes = blocks * one.count * one.element.size;
  const std::size_t parts = part_bytes == 0 ? 1 : std::max<std::size_t>(bytes_ / part_bytes, 1);
  const std::size_t shift = number % parts * part_bytes;
  call.send = static_cast<const char*>(call.send) + shift;
  call.recv = static_cast<char*>(call.recv) + shift;
  return call;
}

void Rank::done_with(const Case& one, const Call& call) {
  if (one.operation.is_mulsum) require(tutti_reduction_destroy(call.reduction, comm_), "destroying the reduction");
}

void Rank::run(const Call& call) { require(collective_.run(call, at_), collective_.name); }

void Rank::synchronize() {
  backend_->synchronize();
  if (backend_->stream() == nullptr) return;  // Calls have reported their errors.
  tutti_status error = tutti_ok;
  require(tutti_comm_async_error(comm_, &error), "tutti_comm_async_error");
  if (error != tutti_ok)
    fail("%s on rank %d: %s: %s", collective_.name, at_.rank, tutti_status_name(error), tutti_last_error(comm_));
}

void Rank::fill(const Case& one, const Call& call, const Pattern& pattern) {
  backend_->poison(recv_, std::max(received_bytes(one), one.count * one.element.size));
  backend_->fill(const_cast<void*>(call.send), pattern, at_.rank, collective_.send_blocks(at_) * one.count);
}

std::uint64_t Rank::wrong(const Case& one, const Call& call, const Pattern& pattern) {
  return backend_->wrong(call.recv, pattern, pattern.output(collective_, at_, one.count));
}

void Rank::fill(const Case& one, const Call& call, const Noise& noise) {
  backend_->poison(recv_, std::max(received_bytes(one), one.count * one.element.size));
  const std::size_t count = collective_.send_blocks(at_) * one.count;
  std::vector<char> values(count * one.element.size);
  noise.fill(values.data(), at_.rank, count);
  backend_->put(const_cast<void*>(call.send), values.data(), values.size());
}

Squares Rank::squares(const Case& one, const Call& call, const Pattern& pattern, const Noise& noise) {
  const Output output = pattern.output(collective_, at_, one.count);
  std::vector<char> values(output.blocks * output.count * one.element.size);
  backend_->get(call.recv, values.data(), values.size());
  return noise.squares(values.data(), output);
}

}  // namespace perf
