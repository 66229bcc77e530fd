#include "python/tutti/torch/native/joining.h"

#include <cstring>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

namespace tutti_torch {
namespace {

const char* c_string(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

int64_t limit_ms(Milliseconds timeout) { return timeout.count() > 0 ? timeout.count() : -1; }

const std::string kIdKey = "tutti/id";
const std::string kRejected = "rank 0 cannot join: ";  // Begins the value of kIdKey if its options are invalid.

// Rank 0 creates the id; the others read it from the store.
tutti_unique_id exchange_id(c10d::Store& store, int rank) {
  tutti_unique_id id;
  if (rank == 0) {
    check(tutti_get_unique_id(&id), rank);
    store.set(kIdKey, std::vector<uint8_t>(id.bytes, id.bytes + sizeof id.bytes));
    return id;
  }
  const std::vector<uint8_t> bytes = store.get(kIdKey);
  const std::string text(bytes.begin(), bytes.end());
  if (text.rfind(kRejected, 0) == 0) throw LibraryError(tutti_remote_error, text, rank);
  TORCH_CHECK(bytes.size() == sizeof id.bytes, "the store's ", kIdKey, " has ", bytes.size(), " bytes instead of ",
              sizeof id.bytes, "; use the same version of tutti on all ranks");
  std::memcpy(id.bytes, bytes.data(), bytes.size());
  return id;
}

// A store may outlive its groups, so the next group must not find the id of this one.
void delete_id(c10d::Store& store) {
  try {
    store.deleteKey(kIdKey);
  } catch (const std::exception&) {
    // Stores that cannot delete keys serve one group.
  }
}

// Replaces the id after a failure of rank 0, so that ranks that have not read it report the failure or wait.
void withdraw_id(c10d::Store& store, const LibraryError& error) {
  if (error.status != tutti_invalid_argument) return delete_id(store);
  try {
    store.set(kIdKey, kRejected + error.msg());
  } catch (const std::exception&) {
    // The other ranks get an error of the store.
  }
}

// Returns on all ranks when the id is gone.
void forget_id(c10d::Store& store, int rank, tutti_comm comm) {
  if (rank == 0) delete_id(store);
  uint8_t token = 0;
  const tutti_status status = tutti_broadcast(&token, &token, 1, tutti_uint8, 0, comm, nullptr);
  // A rank that has returned may already have failed the communicator by its first call, or have ended. The first call
  // of this rank reports that.
  if (status != tutti_invalid_usage && status != tutti_remote_error) check(status, rank);
}

// Returns the prefix of the store's keys of the group with this id: its FNV-1a hash, as on the Python path.
std::string prefix_of(const tutti_unique_id& id) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : id.bytes) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  return "tutti/" + std::to_string(hash);
}

// Message of a rank to all others before they create a communicator on GPUs.
struct DeviceOffer {
  tutti_unique_id id;     // Valid from rank 0.
  tutti_status status;    // Unless it is ok, the rank cannot join.
  char reason[508] = {};  // Why it cannot.
};

DeviceOffer offer_of(c10::Device device, int rank) {
  DeviceOffer offer{};
  int current = 0;
  offer.status = tutti_current_device(&current);
  std::string reason;
  if (offer.status != tutti_ok) {
    reason = c10::str("a tensor is on ", device.str(), ". ", tutti_last_error(nullptr),
                      ", or pass \"cpu:tutti,cuda:nccl\" as the backend");
  } else if (rank == 0) {
    offer.status = tutti_get_unique_id(&offer.id);
    if (offer.status != tutti_ok) reason = tutti_last_error(nullptr);
  }
  reason.copy(offer.reason, sizeof offer.reason - 1);
  return offer;
}

// Returns the id of rank 0. If a rank cannot join, throws on all ranks.
tutti_unique_id exchange_offers(tutti_comm comm, const Member& member, c10::Device device) {
  const DeviceOffer own = offer_of(device, member.rank);
  std::vector<DeviceOffer> offers(static_cast<size_t>(member.size));
  check(tutti_all_gather(&own, offers.data(), sizeof own, tutti_uint8, comm, nullptr), member.rank);
  for (int rank = 0; rank < member.size; ++rank) {
    const DeviceOffer& offer = offers[static_cast<size_t>(rank)];
    if (offer.status == tutti_ok) continue;
    throw LibraryError(offer.status, (rank == member.rank ? "" : "rank " + std::to_string(rank) + ": ") + offer.reason,
                       member.rank);
  }
  return offers[0].id;
}

}  // namespace

tutti_comm_options comm_options(const Options& options) {
  tutti_comm_options result = TUTTI_COMM_OPTIONS_DEFAULT;
  result.name = c_string(options.communicator_name);
  result.timeout_ms = limit_ms(options.timeout);
  result.init_timeout_ms = result.timeout_ms;
  result.compression = c_string(options.compression);
  result.max_relative_error = options.max_relative_error;
  result.compression_rounding = c_string(options.compression_rounding);
  result.compression_seed = options.compression_seed;
  return result;
}

Joined join(const Member& member, const Options& options) {
  const tutti_unique_id id = exchange_id(*member.store, member.rank);
  tutti_comm_options joining = comm_options(options);
  joining.init_timeout_ms = limit_ms(member.timeout);
  tutti_comm comm = nullptr;
  try {
    check(tutti_comm_create(&id, member.rank, member.size, &joining, &comm), member.rank);
  } catch (const LibraryError& error) {
    if (member.rank == 0) withdraw_id(*member.store, error);
    throw;
  }
  auto communicator = std::make_shared<Communicator>(comm, options.timeout, member.rank);
  forget_id(*member.store, member.rank, comm);
  return {std::move(communicator), c10::make_intrusive<c10d::PrefixStore>(prefix_of(id), member.store)};
}

std::shared_ptr<Communicator> join_on_device(tutti_comm comm, const Member& member, c10::Device device,
                                             const Options& options) {
  const tutti_unique_id id = exchange_offers(comm, member, device);
  const std::string memory = device.str();
  tutti_comm_options joining = comm_options(options);
  joining.memory = memory.c_str();
  tutti_comm made = nullptr;
  check(tutti_comm_create(&id, member.rank, member.size, &joining, &made), member.rank);
  return std::make_shared<Communicator>(made, options.timeout, member.rank);
}

void wait_for_rank_0(const Member& member) {
  if (member.rank != 0) member.store->wait({kIdKey}, member.timeout);
}

}  // namespace tutti_torch
