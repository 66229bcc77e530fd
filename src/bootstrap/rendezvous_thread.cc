#include "src/bootstrap/rendezvous_thread.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "src/base/caught.h"
#include "src/base/file.h"
#include "src/base/log.h"
#include "src/base/service_thread.h"
#include "src/bootstrap/rendezvous.h"

namespace tutti {
namespace {

class RendezvousThread {
 public:
  static Result<std::unique_ptr<RendezvousThread>> start(std::unique_ptr<Rendezvous> rendezvous) {
    std::unique_ptr<RendezvousThread> made(new RendezvousThread);
    made->stop_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!made->stop_) return system_error("open an eventfd");
    made->rendezvous_ = std::move(rendezvous);
    RendezvousThread* self = made.get();
    made->thread_ = TUTTI_TRY(LibraryThread::start([self] {
      const Status served = caught([self]() -> Status {
        self->rendezvous_->run(self->stop_.get());
        return {};
      });
      if (!served.ok()) log(LogLevel::warn, "the rendezvous stopped: %s", served.message().c_str());
      self->rendezvous_.reset();  // Closes its sockets now, so that ranks that are still joining fail.
    }));
    return made;
  }
  ~RendezvousThread() {
    const std::uint64_t one = 1;
    if (stop_) (void)!::write(stop_.get(), &one, sizeof one);
  }
  bool finished() const { return thread_->finished(); }

 private:
  RendezvousThread() = default;
  File stop_;
  std::unique_ptr<Rendezvous> rendezvous_;
  std::unique_ptr<LibraryThread> thread_;  // Last member: the thread must end before the others are destroyed.
};

class RendezvousThreads {
 public:
  void add(std::unique_ptr<RendezvousThread> thread) {
    const std::lock_guard lock(mutex_);
    std::erase_if(threads_, [](const auto& earlier) { return earlier->finished(); });
    threads_.push_back(std::move(thread));
  }

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  void forget() {
    for (auto& thread : threads_) (void)thread.release();
    threads_.clear();
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<RendezvousThread>> threads_;
};

// Rendezvous threads of this process, which end with it. A forked child has none and waits for none.
RendezvousThreads of_process;

// Registered when the library is loaded. A fork() during the first use would otherwise leave a locked guard in the
// child.
[[maybe_unused]] const int fork_handlers = ::pthread_atfork([] { of_process.lock(); }, [] { of_process.unlock(); },
                                                            [] {
                                                              of_process.forget();
                                                              of_process.unlock();
                                                            });

}  // namespace

Result<UniqueId> start_rendezvous(const RendezvousOptions& options, const Address& address,
                                  std::optional<Invitation> invitation) {
  Socket listener = TUTTI_TRY(listen_at({address, "", SOCK_STREAM}));
  const Address bound = TUTTI_TRY(local_address(listener));
  const UniqueId id = TUTTI_TRY(generate_unique_id(bound));
  const Secret key = TUTTI_TRY(communicator_key(id, options.secret_file));
  auto rendezvous = std::make_unique<Rendezvous>(id, options.report_after_ms);
  rendezvous->listen(std::move(listener), Role::join, {key, id.communicator});
  if (invitation) {
    rendezvous->listen(std::move(invitation->listener), Role::invitation, invitation->credentials);
    rendezvous->advise(std::move(invitation->advice), std::move(invitation->two_jobs));
  }
  std::unique_ptr<RendezvousThread> thread = TUTTI_TRY(RendezvousThread::start(std::move(rendezvous)));
  of_process.add(std::move(thread));
  log(LogLevel::info, "rendezvous at %s", describe(id.address).c_str());
  return id;
}

Result<UniqueId> make_unique_id(const RendezvousOptions& options) {
  if (options.scope == ListenScope::host) return start_rendezvous(options, loopback_address(), std::nullopt);
  const Address address = TUTTI_TRY(own_address(options.socket_ifname));
  return start_rendezvous(options, address, std::nullopt);
}

}  // namespace tutti
