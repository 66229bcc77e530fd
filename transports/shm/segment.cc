#include "transports/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>
#include <string>
#include <utility>

namespace tutti {

Result<Segment> Segment::create(const char* name, std::size_t bytes, Forked forked) {
  File file(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return system_error("create shared memory of " + std::to_string(bytes) + " bytes");
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) {
    return system_error("size shared memory to " + std::to_string(bytes) + " bytes");
  }
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) return system_error("seal shared memory");
  return map(std::move(file), bytes, forked);
}

Result<Segment> Segment::adopt(File file, std::size_t bytes) {
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0) return system_error("look at a peer's shared memory");
  if (static_cast<std::size_t>(info.st_size) < bytes) {
    return invalid_argument("a peer's shared memory has " + std::to_string(info.st_size) +
                            " bytes where it announced " + std::to_string(bytes));
  }
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return invalid_argument("a peer's shared memory is not sealed");
  return map(std::move(file), bytes, Forked::dropped);
}

Result<Segment> Segment::map(File file, std::size_t bytes, Forked forked) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) return system_error("map " + std::to_string(bytes) + " bytes of shared memory");
  if (forked == Forked::dropped) ::madvise(data, bytes, MADV_DONTFORK);
  Segment segment;
  segment.file_ = std::move(file);
  segment.data_ = static_cast<std::byte*>(data);
  segment.bytes_ = bytes;
  return segment;
}

Result<File> Segment::duplicate() const {
  File copy(::fcntl(file_.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy) return system_error("duplicate a descriptor of shared memory");
  return copy;
}

Status Segment::move_to(std::byte* address) {
  void* moved = ::mmap(address, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_.get(), 0);
  if (moved == MAP_FAILED) return system_error("map shared memory over the caller's");
  ::munmap(data_, bytes_);
  data_ = address;
  return {};
}

Status Segment::make_private() {
  void* copy = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return system_error("find memory for a private copy");
  std::memcpy(copy, data_, bytes_);
  if (::mremap(copy, bytes_, bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, data_) == MAP_FAILED)
    return system_error("put a private copy back");
  data_ = nullptr;
  bytes_ = 0;
  return {};
}

Segment::Segment(Segment&& other) noexcept
    : file_(std::move(other.file_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Segment& Segment::operator=(Segment&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Segment::~Segment() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

}  // namespace tutti
