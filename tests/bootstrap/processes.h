// Ranks as processes: each runs a function in a forked child and reports its result as text through a pipe.
#pragma once

#include <sys/mman.h>
#include <sys/types.h>

#include <cstdlib>
#include <functional>
#include <new>
#include <string>
#include <vector>

namespace tutti::test {

class Processes {
 public:
  using Work = std::function<std::string()>;
  Processes() = default;
  ~Processes();  // Kills running children.
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  void start(const Work& work);
  void kill(std::size_t index);
  void stop(std::size_t index);  // Sends SIGSTOP.
  // Waits for the child to end. Returns its report, or "killed by signal 9".
  std::string report(std::size_t index);
  std::vector<std::string> reports();

 private:
  struct Child {
    pid_t pid = 0;
    int pipe = -1;
  };
  std::vector<Child> children_;
};

// Semaphore shared with all processes forked later. open(count) lets `count` calls of wait() return.
class Gate {
 public:
  Gate();
  ~Gate();
  void open(int count = 1) const;
  void wait() const;

 private:
  int event_;
};

// A T in memory shared with all processes forked later.
template <class T>
class Shared {
 public:
  Shared() : memory_(::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ == MAP_FAILED) std::abort();
    new (memory_) T();
  }
  ~Shared() { ::munmap(memory_, sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  T& operator*() const { return *static_cast<T*>(memory_); }
  T* operator->() const { return static_cast<T*>(memory_); }

 private:
  void* memory_;
};

}  // namespace tutti::test
