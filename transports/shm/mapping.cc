#include "transports/shm/mapping.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

namespace tutti {
namespace {

// Common mappings of this process.
struct Registry {
  std::mutex mutex;
  std::map<Mapping::Identity, std::weak_ptr<Mapping>> mappings;
};

// Never destroyed: communicators that the program does not destroy may end after static objects.
Registry& registry = *new Registry;

// fork() takes the lock, and the child forgets the mappings, which it does not have. Registered when the library is
// loaded: a fork() during the first use would leave the child waiting for it to end.
[[maybe_unused]] const int watched = ::pthread_atfork([] { registry.mutex.lock(); }, [] { registry.mutex.unlock(); },
                                                      [] {
                                                        registry.mappings.clear();
                                                        registry.mutex.unlock();
                                                      });

// Names the limit that caused the error, if one did.
Status no_address_space(std::size_t bytes) {
  const int error = errno;
  Status status = system_error("map " + std::to_string(bytes) + " bytes of shared memory");
  rlimit space = {};
  if (error != ENOMEM || ::getrlimit(RLIMIT_AS, &space) != 0 || space.rlim_cur == RLIM_INFINITY) return status;
  return {Code::system, status.message() + ": the address space of this process is limited to " +
                            std::to_string(space.rlim_cur) + " bytes: raise the limit with ulimit -v"};
}

}  // namespace

Result<std::shared_ptr<Mapping>> Mapping::make(int file, std::size_t bytes) {
  auto made = std::make_shared<Mapping>();  // Allocated first: if this throws, nothing is mapped.
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (data == MAP_FAILED) return no_address_space(bytes);
  made->data_ = static_cast<std::byte*>(data);
  made->bytes_ = bytes;
  return made;
}

Result<std::shared_ptr<Mapping>> Mapping::share(int file, std::size_t bytes) {
  struct stat info = {};
  if (::fstat(file, &info) != 0) return system_error("stat shared memory");
  const Identity identity = {info.st_dev, info.st_ino};
  std::shared_ptr<Mapping> mapping;  // Declared before the lock, because its destructor takes the lock.
  const std::lock_guard lock(registry.mutex);
  const auto known = registry.mappings.find(identity);
  if (known != registry.mappings.end()) mapping = known->second.lock();
  if (mapping != nullptr && mapping->bytes_ >= bytes) return mapping;
  std::shared_ptr<Mapping> made = TUTTI_TRY(make(file, bytes));
  ::madvise(made->data_, bytes, MADV_DONTFORK);
  registry.mappings[identity] = made;
  made->shared_as_ = identity;  // Set last: if inserting throws, the destructor must not take the lock.
  return made;
}

Mapping::~Mapping() {
  if (shared_as_) {
    const std::lock_guard lock(registry.mutex);
    const auto known = registry.mappings.find(*shared_as_);
    // A larger mapping may have replaced this one, as may one created after the last user of this one left.
    if (known != registry.mappings.end() && known->second.expired()) registry.mappings.erase(known);
  }
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

Status Mapping::move_to(int file, std::byte* address) {
  TUTTI_ASSERT(!shared_as_);
  void* moved = ::mmap(address, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
  if (moved == MAP_FAILED) return system_error("map shared memory over the caller's");
  ::munmap(data_, bytes_);
  data_ = address;
  return {};
}

Status Mapping::make_private() {
  TUTTI_ASSERT(!shared_as_);
  void* copy = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return system_error("find memory for a private copy");
  std::memcpy(copy, data_, bytes_);
  if (::mremap(copy, bytes_, bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, data_) == MAP_FAILED)
    return system_error("put a private copy back");
  data_ = nullptr;
  bytes_ = 0;
  return {};
}

}  // namespace tutti
