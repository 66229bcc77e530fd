// Creation and destruction of backends on devices.
#include <unistd.h>

#include <utility>
#include <vector>

#include "src/base/caught.h"
#include "src/communicator/device/device_backend.h"
#include "src/communicator/device/time_sliced_launcher.h"
#include "src/communicator/peers/deferred_frees.h"

namespace tutti {

namespace {

// Lets the program abort communicators while their ranks attach devices, before it has the communicators.
class AbortWatch {
 public:
  explicit AbortWatch(const std::vector<Communicator*>& members) : members_(members) {
    for (Communicator* member : members_) member->control()->failures.watch_abort(member->options().abort);
  }
  ~AbortWatch() {
    for (Communicator* member : members_) member->control()->failures.watch_abort(nullptr);
  }
  AbortWatch(const AbortWatch&) = delete;
  AbortWatch& operator=(const AbortWatch&) = delete;

 private:
  const std::vector<Communicator*>& members_;
};

}  // namespace

// Failures are reported to peers, which wait for this rank.
Status DeviceBackend::attach(const std::vector<Communicator*>& members, const std::shared_ptr<Device>& device) {
  const AbortWatch watch(members);
  Status attached = caught([&] { return attach_all(members, device); });
  if (attached.ok()) return attached;
  Status first;
  for (Communicator* member : members) {
    Status published = member->fail(attached.copy());
    if (first.ok()) first = std::move(published);
  }
  return first;
}

Status DeviceBackend::attach_all(const std::vector<Communicator*>& members, const std::shared_ptr<Device>& device) {
  run_deferred_frees();
  std::vector<PeerSet> peers = TUTTI_TRY(PeerSet::connect(members, device));
  for (std::size_t i = 0; i < members.size(); ++i) {
    auto* made = new DeviceBackend(*members[i], std::move(peers[i]));
    members[i]->use_device(std::unique_ptr<Backend>(made));
    Status ready = made->order_.make_events();
    if (ready.ok() && made->ranks_ > 1) ready = made->set_up_device();
    TUTTI_CHECK_OK(std::move(ready));
  }
  // Allocating memory may wait for the device, so no thread block may be waiting there for a rank that still allocates.
  // No rank may leave before all have met, either.
  TUTTI_CHECK_OK(PeerSet::await_all(members));
  for (Communicator* member : members) {
    DeviceBackend& joined = *member->on_device();
    joined.jobs_.set_joining(joined.board().last(joined.rank_));
    DeviceAutotuning* const autotuning = joined.preparer_.autotuning();
    if (autotuning != nullptr) autotuning->read_published();
  }
  return {};
}

DeviceBackend::DeviceBackend(Communicator& communicator, PeerSet peers)
    : process_(::getpid()),
      control_(communicator.control()),
      rank_(communicator.rank()),
      ranks_(communicator.ranks()),
      peers_(std::move(peers)),
      windows_(communicator, peers_),
      order_(device()),
      monitor_(*control_, peers_, windows_),
      preparer_(communicator, peers_, windows_),
      jobs_(rank_, peers_, windows_, order_) {}

// Thread blocks read host memory until they have ended, which happens soon after a failure. A child of fork() keeps
// everything: the threads do not exist there, their locks may be held forever, and it must not use the device.
bool DeviceBackend::close() {
  if (process_ != ::getpid()) return false;
  if (reports_ != nullptr) wait_for_remote_access();
  if (launcher_ != nullptr) launcher_->close();  // If the backend is kept, its thread ends by itself.
  const Result<bool> done = order_.is_idle();
  const bool over = done.ok() && done.value() && (launcher_ == nullptr || launcher_->is_idle());
  if (reports_ != nullptr && !over) {
    monitor_.stop_polling();
    return false;  // With its source, so that deferred frees wait for its calls, too.
  }
  source_.reset();
  return true;
}

// Memory that only peers may have open is kept until they close it. Peers on other hosts of an NVLink domain cannot be
// watched after the communicator has ended, so memory that they may still use is never freed.
DeviceBackend::~DeviceBackend() {
  monitor_.drain();
  monitor_.stop_proxy();
  for (auto& lanes : peers_.close_remote_lanes())
    free_when_idle([lanes = std::move(lanes)]() mutable { lanes.reset(); });
  if (has_failed()) own_memory().keep_multicast_of_windows(windows_.release_multicast());
  if (!peers_.domain_has_left(board())) own_memory().retain_exported_lanes();
  if (peers_.has_other_processes()) keep_until_all_have_left(peers_.shared_own_memory(), board());
  run_deferred_frees();
  if (reports_ == nullptr) return;
  launcher_.reset();
  if (queue_ != nullptr) device().drop_queue(queue_);
  windows_.release_all();
  reports_.reset();
}

// A communicator that was made after a failure may use memory that thread blocks of peers still access.
Status DeviceBackend::extend_to(Communicator* child) {
  if (has_failed()) wait_for_remote_access();
  return child == nullptr ? Status() : attach({child}, own_memory().shared_device());
}

}  // namespace tutti
