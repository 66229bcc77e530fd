// The file of a tune cache.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <thread>

#include "src/base/clock.h"
#include "src/base/owned.h"
#include "src/tuner/tune_cache.h"

namespace tutti {
namespace {

using File = Owned<int, ::close, -1>;

constexpr std::size_t kMostBytes = 4 << 20;
constexpr std::int64_t kLongestWaitNs = 2'000'000'000;

Result<std::string> read_text(const std::string& path) {
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // A pipe would wait for its writer.
  if (!file && errno == ENOENT) return std::string();
  if (!file) return system_error("open " + path);
  struct stat state = {};
  if (::fstat(file.get(), &state) != 0) return system_error("look at " + path);
  if (!S_ISREG(state.st_mode)) return invalid_usage(path + " is not a regular file");
  if (state.st_size > static_cast<off_t>(kMostBytes))
    return invalid_usage(path + " has " + std::to_string(state.st_size) +
                         " bytes, and no file of this kind has more than " + std::to_string(kMostBytes));
  std::string text(kMostBytes + 1, '\0');
  std::size_t length = 0;
  while (length < text.size()) {
    const ssize_t count = ::read(file.get(), text.data() + length, text.size() - length);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error("read " + path);
    if (count == 0) break;
    length += static_cast<std::size_t>(count);
  }
  if (length > kMostBytes) return invalid_usage(path + " grows while it is read");
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

// Beside the file, so that it can take its place: of a name that no other communicator or process uses.
std::string name_beside(const std::string& path) {
  static std::atomic<unsigned> made{0};
  return path + "." + std::to_string(::getpid()) + "-" + std::to_string(made.fetch_add(1));
}

// Others may hold it for as long as it takes to read and write the file; who is stopped meanwhile, longer. Where the
// file system has no locks, there is none to wait for.
Status lock(const File& file, std::int64_t deadline_ns, const std::string& path) {
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return {};
    if (now_ns() >= deadline_ns) return timeout_error("another process has held the lock of " + path + " for seconds");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {};
}

// The file, made where there was none, and of all who add to it this one alone. A file that another has taken the
// place of since is not the one to lock.
Result<File> lock_file(const std::string& path) {
  const std::int64_t deadline_ns = now_ns() + kLongestWaitNs;
  for (;;) {
    File file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644));
    if (!file) return system_error("open " + path);
    TUTTI_CHECK_OK(lock(file, deadline_ns, path));
    struct stat locked = {}, named = {};
    if (::fstat(file.get(), &locked) != 0) return system_error("look at " + path);
    const bool there = ::stat(path.c_str(), &named) == 0;
    if (there && named.st_dev == locked.st_dev && named.st_ino == locked.st_ino) return file;
    if (now_ns() >= deadline_ns)
      return timeout_error("others have replaced " + path + " for seconds, each time before it was locked");
  }
}

// What was added last comes last; what does not fit what is read goes, the oldest machines first.
Result<std::string> text_that_fits(TuneCache& cache, std::string_view latest) {
  auto& machines = cache.machines;
  const auto added =
      std::find_if(machines.begin(), machines.end(), [&](const auto& one) { return one.name == latest; });
  if (added != machines.end()) std::rotate(added, added + 1, machines.end());
  std::string text = format(cache);
  while (text.size() > kMostBytes && machines.size() > 1) {
    machines.erase(machines.begin());
    text = format(cache);
  }
  if (text.size() <= kMostBytes) return text;
  return invalid_usage("there are " + std::to_string(text.size()) +
                       " bytes to keep of one machine, and no file has more than " + std::to_string(kMostBytes));
}

}  // namespace

Result<TuneCache> read_tune_cache(const std::string& path) {
  const std::string text = TUTTI_TRY(read_text(path));
  auto parsed = parse_tune_cache(text);
  if (parsed.ok()) return parsed;
  return invalid_usage(path + " is no file of learned choices: " + std::move(parsed).status().message());
}

Status add_to_tune_cache(const std::string& path, const TuneCache::Machine& machine) {
  TUTTI_CHECK_OK(check_machine_name(machine.name));
  const File locked = TUTTI_TRY(lock_file(path));
  TuneCache cache = TUTTI_TRY(read_tune_cache(path));
  for (const TunedClass& tuned : machine.classes) cache.keep(machine.name, tuned);
  const std::string text = TUTTI_TRY(text_that_fits(cache, machine.name));
  const std::string beside = name_beside(path);
  const File file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file) return system_error("create " + beside);
  Status written = write_text(file.get(), text, beside);
  if (written.ok() && ::rename(beside.c_str(), path.c_str()) != 0)
    written = system_error("rename " + beside + " to " + path);
  if (!written.ok()) ::unlink(beside.c_str());
  return written;
}

}  // namespace tutti
