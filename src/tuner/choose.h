// Chooses algorithm, protocol, loop and channels of a call. Host memory: the minimum predicted time. Devices: a table
// of estimates. The result is the same on every rank, because it depends only on state that all ranks share.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/protocol.h"
#include "src/base/status.h"
#include "src/compression/format.h"
#include "src/model/machine.h"
#include "src/plan/algorithm.h"
#include "src/plan/loop.h"
#include "src/plan/problem.h"

namespace tutti {

inline constexpr std::string_view kProtocols[] = {"LL", "Simple", "LL128"};

// Slots of a lane between devices of a host.
inline constexpr std::uint32_t kDeviceLaneSlots = 4;

// Scratch of a rank that all ranks of its host access. Chunks use it in turn.
struct StagingRing {
  std::uint32_t channels = 0;                 // 0: there is none.
  std::uint32_t positions = 0;                // Chunks of a channel.
  std::uint64_t position_bytes = 128 * 1024;  // A chunk on one channel.

  std::size_t bytes() const { return std::size_t{channels} * positions * position_bytes; }
};

// Ranks of other hosts to which a plan sends: all, those on the rail of a rank (with its position on their hosts), or
// only those of them that rings and trees of hosts use. Lanes to fewer peers have more channels.
enum class RemotePeers : std::uint8_t { all, rail, partners };

// Channels with lanes to such peers. 0: there are none.
struct RemoteChannels {
  std::uint32_t rail = 0, partners = 0;
};

struct Query {
  Problem problem;                // in_place is ignored, since ranks may differ in it. Groups: ranks per host.
  std::uint64_t block_bytes = 0;  // Bytes that one rank contributes or receives, in memory.
  bool mapped = false;            // Every rank can access every rank's buffers.
  std::string_view algorithm;     // Forced algorithm; empty: none.
  std::string_view protocol;      // Forced protocol, one of kProtocols; empty: none. LL128 is for devices only.
  // Compression format of messages. If max_relative_error > 0, it bounds the relative RMS error of results, and the
  // format is part of the choice.
  CompressionFormat compression = CompressionFormat::none;
  double max_relative_error = 0;
  DataType type = DataType::float32;
  bool network = false;             // Some ranks are on other hosts.
  std::uint32_t thread_blocks = 0;  // Devices: maximum concurrent channels of a rank. 0: host memory.
  // Devices: NVLinks connect all ranks of a host along rings, but not each pair.
  bool only_rings = false;
  bool on_nvlinks = false;  // Devices: all ranks are on one host, and NVLinks or one GPU connect each pair.
  // Devices: channels requested (0: no request), channels that have lanes between all ranks (default: those of 8 ranks
  // on a host), and number of ring orders that channels use in turn.
  std::uint32_t channels = 0;
  std::uint32_t min_channels = 0, max_channels = 0;  // Bounds without such a request; 0: none.
  std::uint32_t lane_channels = 24;
  std::uint32_t local_channels = 24;  // Devices: channels with lanes between the ranks of each host.
  std::uint32_t orders = 1;
  // Devices: algorithms that send to other hosts only along rails, and the channels with such lanes.
  std::vector<std::pair<const Algorithm*, RemotePeers>> on_rails{};
  RemoteChannels remote_channels = {};
  // Devices: channels with LL lanes to other hosts along rails. 0: LL serves no calls of several hosts.
  std::uint32_t remote_ll_channels = 0;
  std::uint64_t slot_bytes = 64 * 1024, ll_slot_bytes = 4096;  // Devices: data that slots of Simple and LL hold.
  StagingRing ring = {};                                       // Devices: see has_ring().
  bool by_switches = false;  // Devices: in the staging ring, switches add and multicast the elements of this call.
  bool by_switches_mapped = false;                // Devices: they also do so in the buffers of the ranks.
  std::span<const Algorithm* const> catalogue{};  // Algorithms of the collective to choose from.
  const Machine* machine = nullptr;               // Cost model of the machine; null: a typical one.
};

inline constexpr std::string_view kSwitchStaged = "switch_staged";
inline constexpr std::string_view kSwitchMapped = "switch_mapped";
inline constexpr std::string_view kHostStaged = "host_staged";
inline constexpr std::string_view kTreeStaged = "tree_staged";
// Algorithms in the staging ring of several hosts.
inline constexpr bool is_staged_over_hosts(std::string_view algorithm) {
  return algorithm == kHostStaged || algorithm == kTreeStaged;
}

struct Choice {
  std::string_view algorithm;  // Name in the catalogue.
  bool mapped = false;         // Accesses peers' buffers.
  bool staged = false;         // Accesses peers' scratch, in the staging ring.
  bool by_switches = false;    // Switches add and multicast. Otherwise a rank loads from and stores to each other.
  RemotePeers remote_peers = RemotePeers::all;  // By Query::on_rails.
  CompressionFormat compression = CompressionFormat::none;
  Protocol protocol = Protocol::simple;
  std::uint64_t chunk_bytes = 0;  // Maximum message size.
  std::uint32_t channels = 1;
  Loop loop;  // The number of chunks is set when the longest message is known.
};

// Returns the first candidate. A forced algorithm is returned even if it does not support the problem. Fails for an
// unknown forced protocol, or if there is no candidate.
Result<Choice> choose(const Query& query);

// Fails unless the protocol is empty or one of kProtocols. check_query() also checks that forced settings are
// applicable.
Status check_protocol(std::string_view protocol);
Status check_query(const Query& query);
// Bytes of a block in messages of a format.
std::uint64_t message_bytes(const Query& query, CompressionFormat compression);
// Returns how to run an algorithm with a protocol and the format in query.compression.
Choice choice_of(const Query& query, std::string_view algorithm, Protocol protocol);
// Device part of choose(); honours forced settings. Uses the format in query.compression, whatever the bound.
Choice choose_for_gpus(const Query& query);
// Devices: returns the algorithm for a request of NVLS by NCCL's name: kSwitchMapped if switches serve the buffers and
// it is predicted to be the faster one, else kSwitchStaged.
std::string_view switch_algorithm(const Query& query);
// Devices: true if an algorithm finds a staging ring. Between ranks of several hosts only those of
// is_staged_over_hosts() do.
bool has_ring(const Query& query, std::string_view algorithm);
// Devices: limits the channels to those requested and available. A minimum above the available number has no effect.
void limit_channels(const Query& query, Choice& choice);
// True if the algorithm depends on the order of ranks, of which each channel may have its own. Ranks of such an
// algorithm communicate with their ring peers only; between hosts, the first and last rank of a host do.
bool uses_rank_order(std::string_view algorithm);
// Devices: returns the format of minimum predicted time that satisfies the query's error bound; none if the gain is too
// small. Without a bound, returns query.compression.
CompressionFormat format_for_gpus(const Query& query);

}  // namespace tutti
