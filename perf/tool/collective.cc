#include "perf/tool/collective.h"

#include <cstring>

namespace perf {
namespace {

tutti_status all_reduce(const Call& call, const Position&) {
  return tutti_all_reduce(call.send, call.recv, call.count, call.type, call.reduction, call.comm, call.stream);
}

tutti_status all_gather(const Call& call, const Position&) {
  return tutti_all_gather(call.send, call.recv, call.count, call.type, call.comm, call.stream);
}

tutti_status reduce_scatter(const Call& call, const Position&) {
  return tutti_reduce_scatter(call.send, call.recv, call.count, call.type, call.reduction, call.comm, call.stream);
}

tutti_status broadcast(const Call& call, const Position&) {
  return tutti_broadcast(call.send, call.recv, call.count, call.type, call.root, call.comm, call.stream);
}

tutti_status reduce(const Call& call, const Position&) {
  return tutti_reduce(call.send, call.recv, call.count, call.type, call.reduction, call.root, call.comm, call.stream);
}

tutti_status all_to_all(const Call& call, const Position&) {
  return tutti_all_to_all(call.send, call.recv, call.count, call.type, call.comm, call.stream);
}

tutti_status gather(const Call& call, const Position&) {
  return tutti_gather(call.send, call.recv, call.count, call.type, call.root, call.comm, call.stream);
}

tutti_status scatter(const Call& call, const Position&) {
  return tutti_scatter(call.send, call.recv, call.count, call.type, call.root, call.comm, call.stream);
}

// A ring shift: sends to the next rank and receives from the previous one.
tutti_status send_recv(const Call& call, const Position& at) {
  tutti_group_start();
  tutti_send(call.send, call.count, call.type, (at.rank + 1) % at.ranks, call.comm, call.stream);
  tutti_recv(call.recv, call.count, call.type, (at.rank + at.ranks - 1) % at.ranks, call.comm, call.stream);
  return tutti_group_end();  // Also returns the failures of the calls above.
}

constexpr Collective kCollectives[] = {
    {.name = "all_reduce",
     .title = "AllReduce",
     .call = "all_reduce",
     .flow = Flow::reduce_blocks,
     .send = Blocks::one,
     .recv = Blocks::one,
     .send_on_root = false,
     .recv_on_root = false,
     .has_root = false,
     .own_block = false,
     .in_place = true,
     .run = all_reduce},
    {.name = "all_gather",
     .title = "AllGather",
     .call = "all_gather",
     .flow = Flow::gather_blocks,
     .send = Blocks::one,
     .recv = Blocks::all,
     .send_on_root = false,
     .recv_on_root = false,
     .has_root = false,
     .own_block = false,
     .in_place = true,
     .run = all_gather},
    {.name = "reduce_scatter",
     .title = "ReduceScatter",
     .call = "reduce_scatter",
     .flow = Flow::reduce_blocks,
     .send = Blocks::all,
     .recv = Blocks::one,
     .send_on_root = false,
     .recv_on_root = false,
     .has_root = false,
     .own_block = true,
     .in_place = true,
     .run = reduce_scatter},
    {.name = "broadcast",
     .title = "Broadcast",
     .call = "broadcast",
     .flow = Flow::from_root,
     .send = Blocks::one,
     .recv = Blocks::one,
     .send_on_root = true,
     .recv_on_root = false,
     .has_root = true,
     .own_block = false,
     .in_place = true,
     .run = broadcast},
    {.name = "reduce",
     .title = "Reduce",
     .call = "reduce",
     .flow = Flow::reduce_blocks,
     .send = Blocks::one,
     .recv = Blocks::one,
     .send_on_root = false,
     .recv_on_root = true,
     .has_root = true,
     .own_block = false,
     .in_place = true,
     .run = reduce},
    {.name = "alltoall",
     .title = "AlltoAll",
     .call = "all_to_all",
     .flow = Flow::gather_blocks,
     .send = Blocks::all,
     .recv = Blocks::all,
     .send_on_root = false,
     .recv_on_root = false,
     .has_root = false,
     .own_block = true,
     .in_place = true,
     .run = all_to_all},
    {.name = "gather",
     .title = "Gather",
     .call = "gather",
     .flow = Flow::gather_blocks,
     .send = Blocks::one,
     .recv = Blocks::all,
     .send_on_root = false,
     .recv_on_root = true,
     .has_root = true,
     .own_block = false,
     .in_place = true,
     .run = gather},
    {.name = "scatter",
     .title = "Scatter",
     .call = "scatter",
     .flow = Flow::from_root,
     .send = Blocks::all,
     .recv = Blocks::one,
     .send_on_root = true,
     .recv_on_root = false,
     .has_root = true,
     .own_block = true,
     .in_place = true,
     .run = scatter},
    {.name = "sendrecv",
     .title = "SendRecv",
     .call = nullptr,
     .flow = Flow::from_previous,
     .send = Blocks::one,
     .recv = Blocks::one,
     .send_on_root = false,
     .recv_on_root = false,
     .has_root = false,
     .own_block = false,
     .in_place = false,
     .run = send_recv},
};

std::size_t blocks(Blocks held, bool on_root, const Position& at) {
  if (on_root && at.rank != at.root) return 0;
  if (held == Blocks::none) return 0;
  return held == Blocks::all ? static_cast<std::size_t>(at.ranks) : 1;
}

}  // namespace

std::size_t Collective::send_blocks(const Position& position) const { return blocks(send, send_on_root, position); }
std::size_t Collective::recv_blocks(const Position& position) const { return blocks(recv, recv_on_root, position); }

std::size_t Collective::send_offset(const Position& at) const {
  return recv == Blocks::all && send == Blocks::one && recv_blocks(at) > 0 ? static_cast<std::size_t>(at.rank) : 0;
}

std::size_t Collective::recv_offset(const Position& at) const {
  return send == Blocks::all && recv == Blocks::one && send_blocks(at) > 0 ? static_cast<std::size_t>(at.rank) : 0;
}

double Collective::bus_factor(int ranks) const {
  const double others = (ranks - 1.0) / ranks;
  if (divides()) return others;
  return flow == Flow::reduce_blocks && !recv_on_root ? 2 * others : 1;
}

const Collective* find_collective(const char* name) {
  for (const Collective& collective : kCollectives) {
    if (std::strcmp(collective.name, name) == 0) return &collective;
  }
  return nullptr;
}

}  // namespace perf
