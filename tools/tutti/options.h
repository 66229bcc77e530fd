// Options of the tool's commands, and texts that the descriptions of several commands share.
#pragma once

#include <string>

#include "src/base/status.h"
#include "tools/tutti/command.h"

namespace tutti::tool {

// Keys of options. A name means the same in all commands that have it, except --bytes: a block in explain, the larger
// buffer in simulate.
enum Option {
  kAccumulate,
  kAlgorithm,
  kAll,
  kBucket,
  kBytes,
  kChannels,
  kCollective,
  kCompare,
  kCompute,
  kCores,
  kDot,
  kFail,
  kFigure,
  kFile,
  kFused,
  kGpu,
  kGpus,
  kGroups,
  kHosts,
  kHostsPerLeaf,
  kInPlace,
  kJitter,
  kJson,
  kKernels,
  kLaunch,
  kLike,
  kLink,
  kMachine,
  kMapped,
  kMaxRelativeError,
  kMemory,
  kNccl,
  kNvlinkDomain,
  kOverlap,
  kOversubscription,
  kParameters,
  kChunk,
  kPreset,
  kProtocol,
  kRails,
  kRank,
  kRanks,
  kRanksPerHost,
  kRings,
  kRoot,
  kSeed,
  kSlots,
  kSlow,
  kSvg,
  kTiers,
  kTopology,
  kTrace,
  kTransport,
  kTuneFile,
  kType,
  kEachRank,
  kCompress,
};

// Returns the error for an option that the command's table has and its apply() does not implement.
Status not_implemented();

// Table rows of options that several commands share.
OptionRow collective_row(const std::string& default_text);
OptionRow groups_row(const std::string& default_text, const std::string& number_of_layouts);
OptionRow gpu_row();
OptionRow nvlink_domain_row();
OptionRow compress_row();
OptionRow max_relative_error_row();
OptionRow type_row();
inline constexpr const char* kTypeWithoutCompression =
    "--type needs --compress or --max-relative-error: the time of other calls depends on their bytes only; omit it";

// Describes the names and uses of all protocols.
std::string protocol_names();

}  // namespace tutti::tool
