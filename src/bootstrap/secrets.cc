#include "src/bootstrap/secrets.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "src/base/file.h"

namespace tutti {
namespace {

constexpr std::size_t kMaxFileBytes = 4096;

// Initialized when the library is loaded: sodium_init() takes a lock, which a fork during the first use might leave
// locked.
const bool ready = ::sodium_init() >= 0;

// Fails if users other than the owner can read the file.
Result<std::string> read_secret(const std::string& path) {
  if (path.empty()) return std::string();
  // Non-blocking: opening a pipe would wait for its writer.
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return system_error("open the secret file " + path);
  struct stat state = {};
  if (::fstat(file.get(), &state) != 0) return system_error("stat the secret file " + path);
  if (!S_ISREG(state.st_mode)) {
    return invalid_usage("the secret file " + path + " is not a regular file: write the secret to one, of mode 0600");
  }
  if ((state.st_mode & 077) != 0)
    return invalid_usage("the secret file " + path + " is open to other users: chmod 600 it");
  std::string text(kMaxFileBytes, '\0');
  const ssize_t count = ::read(file.get(), text.data(), text.size());
  if (count < 0) return system_error("read the secret file " + path);
  if (count < 16) {
    return invalid_usage("the secret file " + path + " holds fewer than 16 bytes (" + std::to_string(count) +
                         "): head -c 32 /dev/urandom makes enough");
  }
  text.resize(static_cast<std::size_t>(count));
  return text;
}

}  // namespace

Status fill_randomly(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::getrandom(bytes.data(), bytes.size(), 0);
    if (count < 0 && errno != EINTR) return system_error("get random bytes");
    if (count > 0) bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return {};
}

Digest digest(const Secret& key, std::initializer_list<Bytes> parts) {
  TUTTI_ASSERT(ready);
  crypto_generichash_state state;
  ::crypto_generichash_init(&state, key.data(), key.size(), sizeof(Digest));
  const auto add = [&state](Bytes part) {
    ::crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(part.data()), part.size());
  };
  for (const Bytes part : parts) {
    const std::uint64_t length = part.size();
    add(bytes_of(length));
    add(part);
  }
  Digest result;
  ::crypto_generichash_final(&state, result.data(), result.size());
  return result;
}

std::string hidden_name(const Secret& key, std::string_view purpose, Rank rank) {
  const Digest name = digest(key, {bytes_of(purpose), bytes_of(rank)});
  std::string text = "tutti.";
  for (std::size_t i = 0; i < 16; ++i) {
    text += "0123456789abcdef"[name[i] >> 4];
    text += "0123456789abcdef"[name[i] & 15];
  }
  return text;
}

bool equal(const Digest& a, const Digest& b) { return ::sodium_memcmp(a.data(), b.data(), a.size()) == 0; }

Result<Secret> communicator_key(const UniqueId& id, const std::string& secret_file) {
  const std::string second = TUTTI_TRY(read_secret(secret_file));
  return Secret(digest(id.secret, {bytes_of("tutti communicator 1"), bytes_of(id.communicator), bytes_of(second)}));
}

Status check_secret_file(const std::string& path) { return read_secret(path).status(); }

Result<Secret> invitation_key(const std::string& secret_file) {
  const std::string second = TUTTI_TRY(read_secret(secret_file));
  return Secret(digest({}, {bytes_of("tutti invitation 1"), bytes_of(second)}));
}

}  // namespace tutti
