// Making, asking and ending communicators.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <string_view>

#include "src/api/call_entry.h"
#include "src/api/environment.h"
#include "src/api/joining.h"
#include "src/api/on_device.h"
#include "src/api/startup_log.h"
#include "src/api/ticket.h"
#include "src/base/config.h"
#include "src/base/log.h"
#include "src/communicator/forced.h"

namespace tutti {
namespace {

Result<std::unique_ptr<Communicator>> create_placed(const UniqueId& id, const Seat& seat, CommunicatorOptions options) {
  const std::shared_ptr<Device> device = TUTTI_TRY(device_to_join_on(options));
  const LogDevice scope(ordinal_of(device));
  auto created = TUTTI_TRY(Communicator::create(id, seat.rank, seat.ranks, std::move(options)));
  log_created(*created, "unique id");
  return place(std::move(created), device);
}

Status check_ranks(int rank, int ranks) {
  if (ranks < 1) return invalid_argument("ranks is " + std::to_string(ranks) + ": pass 1 or more");
  if (static_cast<Rank>(ranks) > kMaxRanks) {
    return invalid_argument("ranks is " + std::to_string(ranks) + ": a communicator has at most " +
                            std::to_string(kMaxRanks));
  }
  if (rank >= 0 && rank < ranks) return {};
  return invalid_argument("rank is " + std::to_string(rank) + ": pass 0 to " + std::to_string(ranks - 1));
}

// Copies the fields that this version knows from the caller's struct, whose size depends on the caller's header.
Result<tutti_comm_options> known_options(const tutti_comm_options& given) {
  constexpr std::size_t first_version_bytes = 72;
  static_assert(sizeof given >= first_version_bytes || sizeof(void*) != 8);
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  if (given.size < std::min(first_version_bytes, sizeof options)) {
    return invalid_argument("options.size is " + std::to_string(given.size) +
                            ": begin with TUTTI_COMM_OPTIONS_DEFAULT");
  }
  const auto* bytes = reinterpret_cast<const char*>(&given);
  const std::size_t known = std::min(given.size, sizeof options);
  if (std::any_of(bytes + known, bytes + given.size, [](char byte) { return byte != 0; })) {
    return unsupported("options.size is " + std::to_string(given.size) + ", and what lies behind byte " +
                       std::to_string(known) + " is set: the program was built against a newer tutti than this, " +
                       std::to_string(TUTTI_VERSION_MAJOR) + "." + std::to_string(TUTTI_VERSION_MINOR));
  }
  std::memcpy(&options, &given, known);
  return options;
}

// Programs may ask for longer than a deadline can say.
Result<std::int64_t> timeout_of(const char* option, std::int64_t given, std::int64_t inherited) {
  if (given < -1) {
    return invalid_argument(std::string("options.") + option + " is " + std::to_string(given) +
                            ": pass a time, 0 for the default, or -1 for none");
  }
  return given == 0 ? inherited : std::min(given, kLongestTimeoutMs);
}

// "host", "cuda", "cuda:1".
Status place_memory(const char* given, CommunicatorOptions& merged) {
  if (given == nullptr) return {};
  const std::string_view name = given;
  const std::string_view prefix = "cuda:";
  merged.device = kCurrentDevice;
  merged.memory = name == "host" ? Memory::host : Memory::cuda;
  if (name == "host" || name == "cuda") return {};
  const char* end = given + name.size();
  if (name.starts_with(prefix)) {
    const auto [stopped, error] = std::from_chars(given + prefix.size(), end, merged.device);
    if (error == std::errc() && stopped == end && merged.device >= 0) return {};
  }
  return invalid_argument("options.memory is \"" + std::string(name) +
                          "\": pass \"host\", \"cuda\", \"cuda:\" and the number of a GPU, or null");
}

// A format and a bound on the error say the same thing in two ways; of what is inherited the one takes the place of the
// other.
Status bound_error(const tutti_comm_options& given, CommunicatorOptions& merged) {
  const double bound = given.max_relative_error;
  if (!(bound >= 0 && bound < 1))
    return invalid_argument("options.max_relative_error is " + std::to_string(bound) +
                            ": pass a number above 0 and below 1, such as 0.01, or 0 for none");
  if (bound > 0 && given.compression == nullptr) merged.compression = "";
  if (bound == 0 && given.compression != nullptr) merged.max_relative_error = 0;
  if (bound > 0) merged.max_relative_error = bound;
  return check_compression_or_bound(
      bound > 0 ? "options.compression and options.max_relative_error" : "TUTTI_COMPRESS and TUTTI_MAX_RELATIVE_ERROR",
      merged.compression, merged.max_relative_error);
}

// Inherited names come from the environment, or from a communicator that has checked them.
Status force_names(const tutti_comm_options& given, CommunicatorOptions& merged) {
  if (given.algorithm != nullptr) merged.algorithm = given.algorithm;
  if (given.protocol != nullptr) merged.protocol = given.protocol;
  if (given.algorithm != nullptr) merged.nccls_algorithm = false;
  if (given.protocol != nullptr) merged.nccls_protocol = false;
  if (given.transport != nullptr) merged.transport = given.transport;
  if (given.compression != nullptr) merged.compression = given.compression;
  if (!config().refused.empty()) return invalid_usage(config().refused);
  TUTTI_CHECK_OK(
      check_transport(given.transport != nullptr ? "options.transport" : "TUTTI_TRANSPORT", merged.transport));
  TUTTI_CHECK_OK(
      check_algorithm(given.algorithm != nullptr ? "options.algorithm" : "TUTTI_ALGORITHM", merged.algorithm));
  TUTTI_CHECK_OK(check_compression_format(given.compression != nullptr ? "options.compression" : "TUTTI_COMPRESS",
                                          merged.compression));
  TUTTI_CHECK_OK(bound_error(given, merged));
  if (given.compression_rounding != nullptr)
    merged.compression_rounding.rounding =
        TUTTI_TRY(parse_rounding("options.compression_rounding", given.compression_rounding));
  if (given.compression_seed != 0) merged.compression_rounding.seed = given.compression_seed;
  const bool asked = given.compression_rounding != nullptr || given.max_relative_error > 0;
  TUTTI_CHECK_OK(check_bounded_rounding(asked ? "options.compression_rounding and options.max_relative_error"
                                              : "TUTTI_COMPRESS_ROUNDING and TUTTI_MAX_RELATIVE_ERROR",
                                        merged.compression_rounding.rounding, merged.max_relative_error));
  return check_protocol(given.protocol != nullptr ? "options.protocol" : "TUTTI_PROTOCOL", merged.protocol);
}

Result<std::vector<tutti_comm>> admit_all(std::vector<std::unique_ptr<Communicator>> communicators) {
  std::vector<tutti_comm> handles;
  for (auto& communicator : communicators) {
    auto admitted = admit(std::move(communicator));
    if (admitted.ok()) {
      handles.push_back(admitted.value());
      continue;
    }
    for (const tutti_comm handle : handles) CommHandles::instance().remove(handle);
    return std::move(admitted).status();
  }
  return handles;
}

}  // namespace

Status check_outside_group(const char* action) {
  if (group_depth == 0) return {};
  return invalid_usage(std::string("communicators are not ") + action + " within a group: call tutti_group_end first");
}

const CommunicatorOptions& options_of(const CommHandle& handle) {
  return handle.options != nullptr ? *handle.options : handle.shared->communicator->options();
}

Status check_same_memory(const CommHandle& handle, const CommunicatorOptions& options) {
  const CommunicatorOptions& own = options_of(handle);
  if (options.transport != own.transport)
    return invalid_argument("options.transport is not that of the communicator: leave it null");
  if (options.memory == own.memory && options.device == own.device) return {};
  return invalid_argument("options.memory is not that of the communicator: leave it null");
}

Status no_communicator(tutti_comm comm) {
  if (comm == nullptr) return invalid_argument("comm is null: pass a communicator");
  return invalid_argument(
      "comm is not a communicator of this process: it was never created, was destroyed, or belongs to the parent of a "
      "fork");
}

Status no_runner(const CommHandle& handle) {
  if (handle.shared->communicator == nullptr) {
    return invalid_usage("the ranks of the communicator have not joined yet: it may only be aborted");
  }
  return invalid_usage("the communicator is finalized: only queries and destroy may follow");
}

namespace {

// Programs without a name to pass may pass an empty one.
void forget_empty(tutti_comm_options& options) {
  for (const char** text : {&options.name, &options.algorithm, &options.protocol, &options.transport,
                            &options.compression, &options.memory, &options.compression_rounding}) {
    if (*text != nullptr && **text == '\0') *text = nullptr;
  }
}

}  // namespace

Result<CommunicatorOptions> options_over(const CommunicatorOptions& inherited, const tutti_comm_options* given) {
  CommunicatorOptions merged = inherited;
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  if (given != nullptr) options = TUTTI_TRY(known_options(*given));
  forget_empty(options);
  if (options.name != nullptr) merged.name = options.name;
  TUTTI_CHECK_OK(force_names(options, merged));
  merged.timeout_ms = TUTTI_TRY(timeout_of("timeout_ms", options.timeout_ms, merged.timeout_ms));
  merged.init_timeout_ms = TUTTI_TRY(timeout_of("init_timeout_ms", options.init_timeout_ms, merged.init_timeout_ms));
  if (options.channels != 0) merged.channels = options.channels;
  TUTTI_CHECK_OK(place_memory(options.memory, merged));
  if (merged.memory == Memory::host) {
    if (merged.protocol == "LL128" && merged.nccls_protocol) {
      warn_of_nccls("NCCL_PROTO", "LL128 is for GPUs");
      merged.protocol = "";
    }
    TUTTI_CHECK_OK(check_on_host_memory(merged.protocol, merged.channels));
  }
  merged.force();
  return merged;
}

}  // namespace tutti

using tutti::CommunicatorOptions;
using tutti::guarded;
using tutti::handle_of;
using tutti::invalid_argument;
using tutti::Rank;
using tutti::Status;

extern "C" {

tutti_status tutti_get_unique_id(tutti_unique_id* id) {
  return guarded("tutti_get_unique_id", [&]() -> Status {
    if (id == nullptr) return invalid_argument("id is null: pass where to put it");
    const tutti::UniqueId made = TUTTI_TRY(tutti::make_unique_id(tutti::environment_rendezvous()));
    *id = std::bit_cast<tutti_unique_id>(made);
    return {};
  });
}

tutti_status tutti_comm_create(const tutti_unique_id* id, int rank, int ranks, const tutti_comm_options* options,
                               tutti_comm* comm) {
  return guarded("tutti_comm_create", [&]() -> Status {
    if (id == nullptr || comm == nullptr)
      return invalid_argument(std::string(id == nullptr ? "id" : "comm") + " is null");
    TUTTI_CHECK_OK(tutti::check_ranks(rank, ranks));
    TUTTI_CHECK_OK(tutti::check_outside_group("created"));
    CommunicatorOptions merged = TUTTI_TRY(tutti::options_over(tutti::environment_options(), options));
    const tutti::Seat seat = {static_cast<Rank>(rank), static_cast<Rank>(ranks)};
    const auto make = [&](const std::uint32_t* abort) {
      merged.abort = abort;
      return tutti::create_placed(std::bit_cast<tutti::UniqueId>(*id), seat, merged);
    };
    return tutti::join(seat, make, comm);
  });
}

tutti_status tutti_comm_create_all(int ranks, const tutti_comm_options* options, tutti_comm* comms) {
  return guarded("tutti_comm_create_all", [&]() -> Status {
    if (comms == nullptr) return invalid_argument("comms is null: pass an array of ranks entries");
    TUTTI_CHECK_OK(tutti::check_ranks(0, ranks));
    TUTTI_CHECK_OK(tutti::check_outside_group("created"));
    const CommunicatorOptions merged = TUTTI_TRY(tutti::options_over(tutti::environment_options(), options));
    const auto device = TUTTI_TRY(tutti::device_for(merged));
    const tutti::LogDevice scope(tutti::ordinal_of(device));
    auto created = TUTTI_TRY(tutti::Communicator::create_all(static_cast<Rank>(ranks), merged));
    tutti::log_created(*created.front(), "tutti_comm_create_all, all in this process");
    auto made = TUTTI_TRY(tutti::place_all(std::move(created), device));
    const std::vector<tutti_comm> handles = TUTTI_TRY(tutti::admit_all(std::move(made)));
    std::copy(handles.begin(), handles.end(), comms);
    return {};
  });
}

tutti_status tutti_comm_create_from_environment(const tutti_comm_options* options, tutti_comm* comm) {
  return guarded("tutti_comm_create_from_environment", [&]() -> Status {
    if (comm == nullptr) return invalid_argument("comm is null: pass where to put the handle");
    TUTTI_CHECK_OK(tutti::check_outside_group("created"));
    CommunicatorOptions merged = TUTTI_TRY(tutti::options_over(tutti::environment_options(), options));
    const auto device = TUTTI_TRY(tutti::device_to_join_on(merged));
    const tutti::LogDevice scope(tutti::ordinal_of(device));
    const tutti::LaunchedRank launched = TUTTI_TRY(tutti::find_launched_rank(tutti::environment()));
    const auto make = [&](const std::uint32_t* abort) -> tutti::Result<std::unique_ptr<tutti::Communicator>> {
      merged.abort = abort;
      auto joined = TUTTI_TRY(tutti::create_launched(launched, merged));
      tutti::log_created(*joined, launched.launcher.empty() ? "no launcher" : launched.launcher);
      return tutti::place(std::move(joined), device);
    };
    return tutti::join({launched.rank, launched.ranks}, make, comm, launched.launcher);
  });
}

tutti_status tutti_comm_launcher(tutti_comm comm, const char** launcher) {
  return guarded("tutti_comm_launcher", [&]() -> Status {
    if (launcher == nullptr) return invalid_argument("launcher is null: pass where to put the text");
    *launcher = TUTTI_TRY(handle_of(comm))->shared->launcher.c_str();
    return {};
  });
}

tutti_status tutti_comm_split(tutti_comm comm, int color, int key, const tutti_comm_options* options,
                              tutti_comm* part) {
  return guarded("tutti_comm_split", [&]() -> Status {
    const tutti::CommHandle* handle = TUTTI_TRY(handle_of(comm));
    if (part == nullptr) return invalid_argument("part is null: pass where to put the handle");
    if (color < TUTTI_COLOR_NONE) {
      return invalid_argument("color is " + std::to_string(color) + ": pass 0 or more, or TUTTI_COLOR_NONE");
    }
    TUTTI_CHECK_OK(tutti::check_outside_group("split"));
    tutti::Communicator* runner = handle->runner;
    if (runner == nullptr) return tutti::no_runner(*handle);
    const CommunicatorOptions merged = TUTTI_TRY(tutti::options_over(tutti::options_of(*handle), options));
    TUTTI_CHECK_OK(tutti::check_same_memory(*handle, merged));
    const tutti::Ticket turn(handle->shared);
    TUTTI_CHECK_OK(tutti::note_failure(*handle->shared, turn.await()));
    auto made = runner->split(color, key, merged);
    if (!made.ok()) return tutti::note_failure(*handle->shared, std::move(made).status());
    tutti_comm created = nullptr;
    if (made.value() != nullptr) created = TUTTI_TRY(tutti::admit(std::move(made).value()));
    *part = created;
    return {};
  });
}

tutti_status tutti_comm_with_options(tutti_comm comm, const tutti_comm_options* options, tutti_comm* view) {
  return guarded("tutti_comm_with_options", [&]() -> Status {
    const tutti::CommHandle* handle = TUTTI_TRY(handle_of(comm));
    if (view == nullptr) return invalid_argument("view is null: pass where to put the handle");
    if (handle->runner == nullptr) return tutti::no_runner(*handle);
    auto made = std::make_unique<tutti::CommHandle>();
    made->own_options = TUTTI_TRY(tutti::options_over(tutti::options_of(*handle), options));
    TUTTI_CHECK_OK(tutti::check_same_memory(*handle, made->own_options));
    if (made->own_options.name != tutti::options_of(*handle).name)
      return invalid_argument("options.name is another than the communicator's: it is given at creation only");
    made->options = &made->own_options;
    made->is_view = true;
    made->rank = handle->rank;
    made->ranks = handle->ranks;
    made->runner = handle->runner.load();
    made->shared = handle->shared;
    *view = static_cast<tutti_comm>(TUTTI_TRY(tutti::CommHandles::instance().insert(std::move(made))));
    handle->shared->views.push_back(*view);
    return {};
  });
}

tutti_status tutti_comm_rank(tutti_comm comm, int* rank) {
  return guarded("tutti_comm_rank", [&]() -> Status {
    if (rank == nullptr) return invalid_argument("rank is null: pass where to put it");
    const tutti::CommHandle* handle = TUTTI_TRY(handle_of(comm));
    *rank = static_cast<int>(handle->rank);
    return {};
  });
}

tutti_status tutti_comm_ranks(tutti_comm comm, int* ranks) {
  return guarded("tutti_comm_ranks", [&]() -> Status {
    if (ranks == nullptr) return invalid_argument("ranks is null: pass where to put it");
    const tutti::CommHandle* handle = TUTTI_TRY(handle_of(comm));
    *ranks = static_cast<int>(handle->ranks);
    return {};
  });
}

tutti_status tutti_comm_device(tutti_comm comm, int* device) {
  return guarded("tutti_comm_device", [&]() -> Status {
    if (device == nullptr) return invalid_argument("device is null: pass where to put it");
    const tutti::CommHandle* handle = TUTTI_TRY(handle_of(comm));
    *device = tutti::device_of(*handle);
    return {};
  });
}

tutti_status tutti_current_device(int* device) {
  return guarded("tutti_current_device", [&]() -> Status {
    if (device == nullptr) return invalid_argument("device is null: pass where to put it");
    *device = TUTTI_TRY(tutti::current_device());
    return {};
  });
}

}  // extern "C"
