// The file of a tune cache.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

#include "src/base/owned.h"
#include "src/tuner/tune_cache.h"

namespace tutti {
namespace {

using File = Owned<int, ::close, -1>;

constexpr std::size_t kMostBytes = 4 << 20;

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

}  // namespace

Result<TuneCache> read_tune_cache(const std::string& path) {
  const std::string text = TUTTI_TRY(read_text(path));
  auto parsed = parse_tune_cache(text);
  if (parsed.ok()) return parsed;
  return invalid_usage(path + " is no file of learned choices: " + std::move(parsed).status().message());
}

Status add_to_tune_cache(const std::string& path, const TuneCache::Machine& machine) {
  TuneCache cache = TUTTI_TRY(read_tune_cache(path));
  for (const TunedClass& tuned : machine.classes) cache.keep(machine.name, tuned);
  const std::string text = format(cache);
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
