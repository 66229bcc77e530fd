#include "python/tutti/torch/native/process_group.h"

#ifdef C10D_BACKEND_HAS_RECONFIGURE

#include <algorithm>
#include <charconv>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <variant>

#include "python/tutti/torch/native/gil.h"

namespace tutti_torch {
namespace {

using Handles = std::vector<c10d::ReconfigureHandle>;

// Returns the handles by rank. A set is ordered as on the Python path.
Handles handles_by_rank(const c10d::ReconfigureOptions& given) {
  if (const auto* list = std::get_if<Handles>(&given.handles)) return *list;
  const auto& unordered = std::get<std::unordered_set<c10d::ReconfigureHandle>>(given.handles);
  Handles handles(unordered.begin(), unordered.end());
  std::sort(handles.begin(), handles.end());
  return handles;
}

int rank_of(const c10d::ReconfigureHandle& own, const Handles& handles) {
  const auto count = std::count(handles.begin(), handles.end(), own);
  TUTTI_CHECK_ARGUMENT(count == 1, "reconfigure: the handle of this rank, ", own, ", occurs ", count, " times in ",
                       handles.size(), " handles; pass the handle of each rank once");
  return static_cast<int>(std::find(handles.begin(), handles.end(), own) - handles.begin());
}

struct Address {
  std::string host;
  uint16_t port = 0;
};

Address address_of(const c10d::ReconfigureHandle& handle, int rank) {
  const size_t colon = handle.rfind(':');
  Address address{handle.substr(0, colon)};
  const char* end = handle.data() + handle.size();
  const char* begin = colon == std::string::npos ? end : handle.data() + colon + 1;
  const auto parsed = std::from_chars(begin, end, address.port);
  if (address.host.empty() || parsed.ec != std::errc() || parsed.ptr != end || address.port == 0) {
    throw LibraryError(tutti_invalid_argument,
                       c10::str("reconfigure: the handle '", handle, "' is not HOST:PORT, with a port of 1..65535; ",
                                "pass the results of get_reconfigure_handle()"),
                       rank);
  }
  return address;
}

StorePtr connect(const Address& address, Milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = address.port;
  options.timeout = timeout;
  return c10::make_intrusive<c10d::TCPStore>(address.host, options);
}

// Connects to the store of rank 0, and waits until rank 0 has begun to join.
void meet_rank_0(Member& member, const Handles& handles, int64_t uuid) {
  try {
    if (member.rank != 0) member.store = connect(address_of(handles[0], member.rank), member.timeout);
    member.store = c10::make_intrusive<c10d::PrefixStore>("reconfigure/" + std::to_string(uuid), member.store);
    wait_for_rank_0(member);
  } catch (const std::exception& error) {
    const std::string reason = error.what();  // May have a stack trace in further lines.
    throw LibraryError(tutti_timeout,
                       c10::str("reconfigure: rank 0, ", handles[0], ", has not called reconfigure within ",
                                member.timeout.count(), " ms; pass handles of live ranks, and call it on all of them (",
                                reason.substr(0, reason.find('\n')), ")"),
                       member.rank);
  }
}

}  // namespace

c10d::ReconfigureHandle ProcessGroupTutti::get_reconfigure_handle() const {
  const WithoutGil without_gil;
  const std::lock_guard<std::mutex> lock(hosting_mutex_);
  if (!hosted_) {
    c10d::TCPStoreOptions options;
    options.port = 0;  // Any free port.
    options.isServer = true;
    options.waitWorkers = false;
    options.timeout = options_->timeout;
    hosted_ = c10::make_intrusive<c10d::TCPStore>(options_->host, options);
  }
  return options_->host + ":" + std::to_string(hosted_->getPort());
}

WorkPtr ProcessGroupTutti::reconfigure(const c10d::ReconfigureOptions& given) {
  const WithoutGil without_gil;
  const Handles handles = handles_by_rank(given);
  for (const auto& handle : handles) address_of(handle, rank_);
  Member member{nullptr, rank_of(get_reconfigure_handle(), handles), static_cast<int>(handles.size()),
                given.timeout.value_or(options_->timeout)};
  member.store = hosted_;
  if (!queue_->is_idle()) {
    communicator_->abort();
    device_calls_->abort();
  }
  queue_->stop();
  device_calls_->end(OpenCalls::kAbort);
  communicator_->leave();
  use(without_members(member.rank));
  meet_rank_0(member, handles, given.uuid);
  use(join(member, *options_));
  rank_ = member.rank;
  size_ = member.size;
  return start({c10d::OpType::UNKNOWN, {}, c10d::kUnsetTimeout, false, {}, {}}, [](const CallContext&) {});
}

}  // namespace tutti_torch

#endif
