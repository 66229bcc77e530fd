/* Functions of newer versions of glibc, for libraries that run on glibc 2.28. The compiler's libraries and headers call
   them on machines with a newer glibc. All are hidden. They use nothing newer than glibc 2.28. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

/* glibc 2.30 */

HIDDEN pid_t gettid(void) { return (pid_t)syscall(SYS_gettid); }

/* Follows changes of the system time, unlike glibc's. Callers check their deadline after a wait. */
HIDDEN int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                  const struct timespec* deadline) {
  const long second_ns = 1000000000;
  struct timespec now, until;
  if (clock_gettime(clock, &now) != 0 || clock_gettime(CLOCK_REALTIME, &until) != 0) return EINVAL;
  until.tv_sec += deadline->tv_sec - now.tv_sec;
  until.tv_nsec += deadline->tv_nsec - now.tv_nsec;
  if (until.tv_nsec < 0) {
    until.tv_nsec += second_ns;
    --until.tv_sec;
  } else if (until.tv_nsec >= second_ns) {
    until.tv_nsec -= second_ns;
    ++until.tv_sec;
  }
  if (until.tv_sec < 0) until.tv_sec = until.tv_nsec = 0;
  return pthread_cond_timedwait(condition, mutex, &until);
}

/* glibc 2.32 */

/* 0: the process may have several threads, so reference counts are atomic. */
HIDDEN char __libc_single_threaded = 0;

/* glibc 2.33. Before, these were inline calls of versioned functions. */

#ifdef __x86_64__
enum { kStatVersion = 1 };
#else
enum { kStatVersion = 0 };
#endif
int __xstat(int version, const char* path, struct stat* result);
int __lxstat(int version, const char* path, struct stat* result);
int __fxstat(int version, int file, struct stat* result);
int __fxstat64(int version, int file, struct stat64* result);

HIDDEN int stat(const char* path, struct stat* result) { return __xstat(kStatVersion, path, result); }
HIDDEN int lstat(const char* path, struct stat* result) { return __lxstat(kStatVersion, path, result); }
HIDDEN int fstat(int file, struct stat* result) { return __fxstat(kStatVersion, file, result); }
HIDDEN int fstat64(int file, struct stat64* result) { return __fxstat64(kStatVersion, file, result); }

/* glibc 2.35. The unwinder of exceptions calls it. */

#if __GLIBC_PREREQ(2, 35)
struct search {
  uintptr_t address;
  struct dl_find_object* result;
};

static int find_in(struct dl_phdr_info* object, size_t size, void* argument) {
  (void)size;
  const struct search* search = argument;
  uintptr_t begin = UINTPTR_MAX, end = 0, frames = 0;
  int contains = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* segment = &object->dlpi_phdr[i];
    const uintptr_t first = object->dlpi_addr + segment->p_vaddr, last = first + segment->p_memsz;
    if (segment->p_type == PT_GNU_EH_FRAME) frames = first;
    if (segment->p_type != PT_LOAD) continue;
    if (first < begin) begin = first;
    if (last > end) end = last;
    if (search->address >= first && search->address < last) contains = 1;
  }
  if (!contains) return 0;
  *search->result = (struct dl_find_object){
      .dlfo_map_start = (void*)begin, .dlfo_map_end = (void*)end, .dlfo_eh_frame = (void*)frames};
  return frames != 0 ? 1 : -1;
}

HIDDEN int _dl_find_object(void* address, struct dl_find_object* result) {
  struct search search = {(uintptr_t)address, result};
  return dl_iterate_phdr(find_in, &search) == 1 ? 0 : -1;
}
#endif

/* glibc 2.36. Constructors of std::random_device use it. */

HIDDEN uint32_t arc4random(void) {
  uint32_t number = 0;
  while (getrandom(&number, sizeof number, 0) != sizeof number) continue;
  return number;
}
