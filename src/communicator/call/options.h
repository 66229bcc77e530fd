// Options of a communicator and of calls through one of its handles.
#pragma once

#include <cstdint>
#include <string>

#include "src/base/config.h"
#include "src/communicator/call/forced.h"
#include "src/compression/format.h"

namespace tutti {

// The memory that holds the buffers of a communicator's calls.
enum class Memory : std::uint8_t { host, cuda };

// Rounding of numbers between two codes of a compression format. Ranks may differ in it.
struct RequestedRounding {
  Rounding rounding = Rounding::nearest;
  std::uint64_t seed = 0;  // Seed of the random numbers.
};

struct CommunicatorOptions {
  std::string name;  // Used in messages.
  Memory memory = Memory::host;
  int device = -1;                    // For cuda: the device; -1: the current device of the calling thread.
  std::int64_t timeout_ms = 600'000;  // Maximum wait of an operation; 0 or less: no limit.
  std::int64_t init_timeout_ms = 120'000;
  std::string transport;            // "shm": one host. "shm+...": chooses between hosts. Others: each rank is a host.
  std::uint8_t traffic_class = 0;   // RDMA connections, which splits and shrinks share. 0: that of Config.
  std::string algorithm, protocol;  // Forced if not empty.
  bool algorithm_is_from_nccl = false;  // The algorithm comes from NCCL_ALGO, which is ignored if it does not apply.
  bool protocol_is_from_nccl = false;   // The protocol comes from NCCL_PROTO, which is ignored if it does not apply.
  std::string compression;              // Compression of floats; "" or "raw": none.
  double max_relative_error = 0;  // Replaces `compression`: the tuner chooses a format within this error; 0: no bound.
  RequestedRounding compression_rounding;
  std::uint32_t channels = 0;      // 0: the tuner chooses.
  std::uint32_t min_channels = 0;  // Bounds of the tuner's choice on devices; 0: none.
  std::uint32_t max_channels = 0;
  bool probes = true;                   // Measure links between hosts when ranks join. Must match on all ranks.
  std::string gpu;                      // PCI bus id of the rank's device; empty: no device.
  std::string tuner_plugin;             // Name or file, as in TUTTI_TUNER_PLUGIN; empty or "none": no plugin.
  Tune tune = Tune::off;                // Autotuning.
  std::string tune_file;                // File in which rank 0 saves autotuning results; empty: not saved.
  bool deterministic = false;           // Neither measurements nor switches change bits. Must match on all ranks.
  WaitMode wait = WaitMode::automatic;  // How this rank waits for its peers.
  std::string version;                  // Version of the library, stored in the tune file.
  bool shows_buffers = true;            // False for internal calls whose record describes another call.
  std::uint32_t agreement_hash = 0;  // Hash of the options on which ranks must agree; set by update_agreement_hash().
  Requested requested;               // Names among these options, for error messages; set by update_agreement_hash().
  const std::uint32_t* abort = nullptr;  // Valid until the ranks have joined: nonzero makes them give up.

  bool over_network() const { return !transport.empty() && !transport.starts_with("shm"); }
  // A plugin overrides autotuning, so autotuning is off if one is set, even if it cannot be opened.
  bool has_plugin() const { return names_plugin(tuner_plugin); }
  void update_agreement_hash();
};

}  // namespace tutti
