// The measured collectives: buffer shapes, calls and bus bandwidth factors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "perf/tool/elements.h"

namespace perf {

// A rank's position in one call.
struct Position {
  int rank = 0;
  int ranks = 1;
  int root = 0;
};

struct Call {
  const void* send = nullptr;
  void* recv = nullptr;
  std::size_t count = 0;  // Elements per block.
  tutti_type type = tutti_float32;
  tutti_reduction reduction = tutti_sum;
  int root = 0;
  tutti_comm comm = nullptr;
  tutti_stream stream = nullptr;
};

// Maps input elements to output elements; see pattern.h.
enum class Flow {
  reduce_blocks,  // Output element = the reduction of all ranks' elements.
  gather_blocks,  // Output block b = rank b's block.
  from_root,      // Output = the root's block.
  from_previous,  // Output = the block of rank - 1.
};

enum class Blocks { none, one, all };

struct Collective {
  const char* name;   // "all_reduce"
  const char* title;  // "AllReduce", as nccl-tests calls it.
  const char* call;   // The library's name, "all_reduce". Null: the collective has only one algorithm.
  Flow flow;
  Blocks send, recv;                // How many blocks of `count` elements a rank's memory holds.
  bool send_on_root, recv_on_root;  // The memory exists on the root only.
  bool has_root;
  bool own_block;  // A rank's output comes from block `rank` of the inputs.
  bool in_place;
  tutti_status (*run)(const Call& call, const Position& position);

  bool reduces() const { return flow == Flow::reduce_blocks; }
  bool divides() const { return send == Blocks::all || recv == Blocks::all; }  // The size counts all blocks.
  std::size_t send_blocks(const Position& position) const;
  std::size_t recv_blocks(const Position& position) const;
  // For in-place calls: the block of the shared buffer at which the rank's send or receive part begins.
  std::size_t send_offset(const Position& position) const;
  std::size_t recv_offset(const Position& position) const;
  // Ratio of bus bandwidth to algorithm bandwidth, as in nccl-tests.
  double bus_factor(int ranks) const;
};

// Returns null for an unknown name.
const Collective* find_collective(const char* name);

}  // namespace perf
