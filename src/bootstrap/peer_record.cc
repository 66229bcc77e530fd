#include "src/bootstrap/peer_record.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <vector>

#include "src/base/file.h"
#include "src/base/own_cpus.h"
#include "src/bootstrap/secrets.h"

namespace tutti {
namespace {

// Identifies the running kernel. Falls back to the host name if /proc is hidden.
std::string kernel_name() {
  char text[64] = {};
  const File file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  if (!file || ::read(file.get(), text, sizeof text - 1) <= 0) ::gethostname(text, sizeof text - 1);
  return text;
}

std::array<std::uint8_t, 16> shortened(const Digest& whole) {
  std::array<std::uint8_t, 16> id;
  std::copy_n(whole.begin(), id.size(), id.begin());
  return id;
}

// Abstract sockets belong to a network namespace, so two containers may count as two hosts.
std::array<std::uint8_t, 16> host_id() {
  struct stat network = {};
  if (::stat("/proc/self/ns/net", &network) != 0) network = {};
  return shortened(digest(
      {}, {bytes_of("tutti host"), bytes_of(kernel_name()), bytes_of(network.st_dev), bytes_of(network.st_ino)}));
}

// Random id of the process. A forked child gets a new one.
struct ProcessId {
  std::mutex mutex;
  bool drawn = false;
  std::array<std::uint8_t, 16> id{};
};
constinit ProcessId own;

// Registered when the library is loaded. A fork() during the first use would otherwise leave a locked guard in the
// child.
[[maybe_unused]] const int fork_handlers_of_own = ::pthread_atfork([] { own.mutex.lock(); }, [] { own.mutex.unlock(); },
                                                                   [] {
                                                                     own.drawn = false;
                                                                     own.mutex.unlock();
                                                                   });

Result<std::array<std::uint8_t, 16>> process_id() {
  const std::lock_guard lock(own.mutex);
  if (!own.drawn) TUTTI_CHECK_OK(fill_randomly(std::as_writable_bytes(std::span(own.id))));
  own.drawn = true;
  return own.id;
}

// CPUs of the joining thread. Programs that bind ranks do so before.
void show_own_cpus(PeerRecord& record) {
  static_assert(kMaxOwnCpus <= UINT16_MAX);
  const std::vector<std::uint32_t> cpus = own_cpus();
  if (cpus.empty()) return;
  record.own_cpus = static_cast<std::uint16_t>(cpus.size());
  record.first_cpu = static_cast<std::uint16_t>(cpus.front());
}

}  // namespace

std::string hostname_of(const PeerRecord& record) {
  return {record.hostname, ::strnlen(record.hostname, sizeof record.hostname)};
}

std::string describe(const PeerRecord& record) { return hostname_of(record) + " pid " + std::to_string(record.pid); }

Result<PeerRecord> own_record() {
  PeerRecord record;
  record.host = host_id();
  record.kernel = shortened(digest({}, {bytes_of("tutti kernel"), bytes_of(kernel_name())}));
  record.cpus = static_cast<std::uint32_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  show_own_cpus(record);
  record.process = TUTTI_TRY(process_id());
  record.pid = static_cast<std::uint32_t>(::getpid());
  record.uid = ::geteuid();
  ::gethostname(record.hostname, sizeof record.hostname - 1);
  return record;
}

PeerRecord as_own_host(PeerRecord record, Rank rank) {
  record.host = shortened(
      digest({}, {bytes_of("tutti rank apart"), bytes_of(record.host), bytes_of(record.process), bytes_of(rank)}));
  return record;
}

}  // namespace tutti
