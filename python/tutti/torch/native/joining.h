#pragma once
// Options of a process group, and the creation of its communicator through a store of PyTorch.

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <memory>
#include <string>

#include "python/tutti/torch/native/communicator.h"
#include "python/tutti/torch/native/work.h"

namespace tutti_torch {

// Options of a process group. A split and a shrink inherit all of them.
struct Options : c10d::Backend::Options {
  explicit Options(Milliseconds timeout = kBackendDefaultTimeout) : c10d::Backend::Options("tutti", timeout) {}
  c10::intrusive_ptr<c10d::Backend::Options> clone() const { return c10::make_intrusive<Options>(*this); }

  // As in tutti_comm_options.
  std::string compression;
  double max_relative_error = 0;
  std::string compression_rounding;
  uint64_t compression_seed = 0;

  std::string communicator_name;  // Name in messages.
  bool replaces_gloo = false;
  bool joins_later = false;  // Whether the group has no communicator before reconfigure(). Not inherited.
  std::string host;          // Address of this process for the other ranks; see get_reconfigure_handle().
};

using OptionsPtr = c10::intrusive_ptr<Options>;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

// Returns the options in the C API. They refer to strings of `options`.
tutti_comm_options comm_options(const Options& options);

// Parts of a process group. `store` has the keys of this group alone; null after shrinking, and before reconfigure().
struct Joined {
  std::shared_ptr<Communicator> communicator;
  StorePtr store;
};

// Returns the parts of a group that refuses calls.
inline Joined without_members(int rank) {
  return {std::make_shared<Communicator>(nullptr, Milliseconds(0), rank), nullptr};
}

// Place of this process in a new process group.
struct Member {
  StorePtr store;  // Carries the communicator's id.
  int rank;
  int size;
  Milliseconds timeout;  // Time limit of joining.
};

// Blocks until all ranks have joined.
Joined join(const Member& member, const Options& options);

// Creates a communicator in the memory of a GPU. Called by all ranks of `comm`, which is in host memory and carries the
// id; the store is not used. If the library of a rank lacks GPUs, throws on all ranks.
std::shared_ptr<Communicator> join_on_device(tutti_comm comm, const Member& member, c10::Device device,
                                             const Options& options);

// Waits at most member.timeout until rank 0 has begun to join. Throws when that has passed.
void wait_for_rank_0(const Member& member);

}  // namespace tutti_torch
