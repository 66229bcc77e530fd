#include "transports/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>
#include <utility>

namespace tutti {
namespace {

// Checked before ftruncate(), because the kernel would kill the process with SIGXFSZ, without a message.
Status check_file_size(std::size_t bytes) {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur) return {};
  return {Code::system, "size shared memory to " + std::to_string(bytes) + " bytes: the process may make files of " +
                            std::to_string(limit.rlim_cur) + " bytes: raise the limit of file size (ulimit -f)"};
}

// Returns the error of the last system call, which failed to create a descriptor. Names the limit that was reached, if
// any.
Status no_descriptor(const std::string& action) {
  const int error = errno;
  Status status = system_error(action);
  if (error == ENFILE)
    return {Code::system, status.message() + ": no process of this host may open more (fs.file-max)"};
  rlimit files = {};
  if (error != EMFILE || ::getrlimit(RLIMIT_NOFILE, &files) != 0) return status;
  return {Code::system,
          status.message() + ": the limit of this process is " + std::to_string(files.rlim_cur) +
              "; each shared-memory segment and each connection needs a file descriptor: allocate fewer, larger "
              "segments, or raise the limit with ulimit -n"};
}

// There is no fallback to other kinds of files: peers accept only sealed files, which cannot be shrunk.
Status no_memory_file(std::size_t bytes) {
  const bool refused = errno == ENOSYS || errno == EPERM;
  Status status = no_descriptor("create shared memory of " + std::to_string(bytes) + " bytes");
  if (!refused) return status;
  return {Code::system, status.message() + ": the kernel or a seccomp filter, for example of a container, refuses " +
                            "memfd_create, which Tutti needs; allow this system call"};
}

}  // namespace

Result<Segment> Segment::create(const char* name, std::size_t bytes, Forked forked) {
  File file(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return no_memory_file(bytes);
  TUTTI_CHECK_OK(check_file_size(bytes));
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) {
    return system_error("size shared memory to " + std::to_string(bytes) + " bytes");
  }
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) return system_error("seal shared memory");
  Segment segment;
  segment.mapping_ =
      TUTTI_TRY(forked == Forked::kept ? Mapping::make(file.get(), bytes) : Mapping::share(file.get(), bytes));
  segment.file_ = std::move(file);
  return segment;
}

Result<Segment> Segment::adopt(File file, std::size_t bytes) {
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0) return system_error("stat a peer's shared memory");
  if (static_cast<std::size_t>(info.st_size) < bytes) {
    return invalid_usage("a peer's shared memory has " + std::to_string(info.st_size) + " bytes where it announced " +
                         std::to_string(bytes));
  }
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return invalid_usage("a peer's shared memory is not sealed");
  Segment segment;
  segment.mapping_ = TUTTI_TRY(Mapping::share(file.get(), bytes));
  segment.file_ = std::move(file);
  return segment;
}

Result<File> Segment::duplicate() const {
  File copy(::fcntl(file_.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy) return no_descriptor("duplicate a descriptor of shared memory");
  return copy;
}

}  // namespace tutti
