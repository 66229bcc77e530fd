// File access of the tune cache.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "src/base/clock.h"
#include "src/base/file.h"
#include "src/tuner/tune_cache.h"

namespace tutti {
namespace {

constexpr std::size_t kMaxBytes = 4 << 20;
constexpr std::int64_t kMaxWaitNs = 2'000'000'000;

Result<std::string> read_text(const std::string& path) {
  // A pipe would block until it has a writer.
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file && errno == ENOENT) return std::string();
  if (!file) return system_error("open " + path);
  struct stat state = {};
  if (::fstat(file.get(), &state) != 0) return system_error("stat " + path);
  if (!S_ISREG(state.st_mode)) return invalid_usage(path + " is not a regular file");
  if (state.st_size > static_cast<off_t>(kMaxBytes))
    return invalid_usage(path + " has " + std::to_string(state.st_size) + " bytes; the maximum of tune files is " +
                         std::to_string(kMaxBytes));
  std::string text(kMaxBytes + 1, '\0');
  std::size_t length = 0;
  while (length < text.size()) {
    const ssize_t count = ::read(file.get(), text.data() + length, text.size() - length);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error("read " + path);
    if (count == 0) break;
    length += static_cast<std::size_t>(count);
  }
  if (length > kMaxBytes) return invalid_usage(path + " grew while it was read");
  text.resize(length);
  return text;
}

Status write_text(int file, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t count = ::write(file, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error("write " + path);
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

// Locks the file. Other processes hold the lock while they read and write the file, or longer if they are stopped. No
// effect on file systems without locks.
Status lock(const File& file, std::int64_t deadline_ns, const std::string& path) {
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return {};
    if (now_ns() >= deadline_ns) return timeout_error("another process held the lock of " + path + " for 2 s");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {};
}

struct Locked {
  File file;
  std::string path;  // With links resolved, so that rename() replaces the target and not a link.
  struct stat state = {};
};

// Opens or creates the file and locks it. If another process has replaced the file meanwhile, the new one is locked
// instead.
Result<Locked> lock_file(const std::string& path) {
  const std::int64_t deadline_ns = now_ns() + kMaxWaitNs;
  for (;;) {
    Locked locked = {File(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644)), {}};
    if (!locked.file) return system_error("open " + path);
    TUTTI_CHECK_OK(lock(locked.file, deadline_ns, path));
    char real[PATH_MAX] = {};
    if (::realpath(path.c_str(), real) == nullptr && errno != ENOENT) return system_error("follow " + path);
    locked.path = real;  // Empty if the file was removed meanwhile.
    struct stat named = {};
    if (::fstat(locked.file.get(), &locked.state) != 0) return system_error("stat " + path);
    const bool there = ::stat(locked.path.c_str(), &named) == 0;
    if (there && named.st_dev == locked.state.st_dev && named.st_ino == locked.state.st_ino) return locked;
    if (now_ns() >= deadline_ns)
      return timeout_error("other processes replaced " + path + " repeatedly for 2 s before it could be locked");
  }
}

// Copies owner, group and mode. If the group cannot be kept, its rights are removed, so that another group does not get
// them.
Status keep_rights(int file, const struct stat& old, const std::string& path) {
  const bool same_group = ::fchown(file, old.st_uid, old.st_gid) == 0 || ::fchown(file, -1, old.st_gid) == 0;
  const mode_t mode = old.st_mode & (same_group ? 0777 : 0707);
  return ::fchmod(file, mode) == 0 ? Status() : system_error("set the mode of " + path);
}

// Syncs before rename(), since a crash could otherwise leave an empty file. Some file systems do not support it.
Status sync(int file, const std::string& path) {
  if (::fsync(file) == 0 || errno == EINVAL || errno == ENOTSUP) return {};
  return system_error("save " + path);
}

// Writes a new file with a unique name in the same folder and renames it.
Status replace(const Locked& old, std::string_view text) {
  std::string beside = old.path + ".XXXXXX";
  const File file(::mkostemp(beside.data(), O_CLOEXEC));
  if (!file) return system_error("create " + beside);
  Status done = write_text(file.get(), text, beside);
  if (done.ok()) done = keep_rights(file.get(), old.state, beside);
  if (done.ok()) done = sync(file.get(), beside);
  if (done.ok() && ::rename(beside.c_str(), old.path.c_str()) != 0)
    done = system_error("rename " + beside + " to " + old.path);
  if (!done.ok()) ::unlink(beside.c_str());
  return done;
}

// Formats the cache with the latest machine at the end. Drops the oldest machines until the text fits the size limit.
Result<std::string> text_that_fits(TuneCache& cache, std::string_view latest) {
  auto& machines = cache.machines;
  const auto added =
      std::find_if(machines.begin(), machines.end(), [&](const auto& one) { return one.name == latest; });
  if (added != machines.end()) std::rotate(added, added + 1, machines.end());
  std::string text = format(cache);
  while (text.size() > kMaxBytes && machines.size() > 1) {
    machines.erase(machines.begin());
    text = format(cache);
  }
  if (text.size() <= kMaxBytes) return text;
  return invalid_usage("one machine has " + std::to_string(text.size()) +
                       " bytes of results; the maximum of tune files is " + std::to_string(kMaxBytes));
}

}  // namespace

Result<TuneCache> read_tune_cache(const std::string& path) {
  const std::string text = TUTTI_TRY(read_text(path));
  auto parsed = parse_tune_cache(text);
  if (parsed.ok()) return parsed;
  return invalid_usage(path + " is not a tune file: " + std::move(parsed).status().message());
}

Status check_can_create(const std::string& path) {
  if (::access(path.c_str(), F_OK) == 0) return {};
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  return ::access(folder.c_str(), W_OK | X_OK) == 0 ? Status() : system_error("open " + path);
}

Status add_to_tune_cache(const std::string& path, const TuneCache::Machine& machine) {
  TUTTI_CHECK_OK(check_machine_name(machine.name));
  const Locked locked = TUTTI_TRY(lock_file(path));
  TuneCache cache = TUTTI_TRY(read_tune_cache(locked.path));
  for (const TunedClass& tuned : machine.classes) cache.keep(machine.name, tuned);
  const std::string text = TUTTI_TRY(text_that_fits(cache, machine.name));
  return replace(locked, text);
}

}  // namespace tutti
