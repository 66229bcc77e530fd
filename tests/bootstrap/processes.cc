#include "tests/bootstrap/processes.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>

// Children leave by _exit(), with threads that only exit() would have joined. ThreadSanitizer reports these as leaks.
extern "C" const char* __tsan_default_options() { return "report_thread_leaks=0"; }

namespace tutti::test {
namespace {

// The allocator of AddressSanitizer does not survive a fork beside other threads: the child hangs once in a hundred.
#ifdef __SANITIZE_ADDRESS__
constexpr bool forks_beside_threads = false;
#else
constexpr bool forks_beside_threads = true;
#endif

void require_one_thread() {
  if (forks_beside_threads) return;
  const std::filesystem::directory_iterator threads("/proc/self/task");
  if (std::distance(begin(threads), end(threads)) == 1) return;
  std::fputs("this test forks a process that has threads, which the address sanitizer does not support\n", stderr);
  std::abort();
}

}  // namespace

Processes::~Processes() {
  for (std::size_t index = 0; index < children_.size(); ++index) {
    if (children_[index].pid == 0) continue;
    kill(index);
    report(index);
  }
}

void Processes::start(const Work& work) {
  int ends[2];
  require_one_thread();
  if (::pipe(ends) != 0) std::abort();
  const pid_t pid = ::fork();
  if (pid == 0) {
    for (const Child& child : children_) ::close(child.pipe);
    const std::string text = work();
    const bool written = ::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::_exit(written ? 0 : 1);
  }
  ::close(ends[1]);
  children_.push_back({pid, ends[0]});
}

void Processes::kill(std::size_t index) { ::kill(children_[index].pid, SIGKILL); }

void Processes::stop(std::size_t index) { ::kill(children_[index].pid, SIGSTOP); }

std::string Processes::report(std::size_t index) {
  Child& child = children_[index];
  std::string text;
  char part[512];
  for (ssize_t count; (count = ::read(child.pipe, part, sizeof part)) > 0;)
    text.append(part, static_cast<std::size_t>(count));
  ::close(child.pipe);
  int state = 0;
  ::waitpid(child.pid, &state, 0);
  child.pid = 0;
  return WIFSIGNALED(state) ? "killed by signal " + std::to_string(WTERMSIG(state)) : text;
}

std::vector<std::string> Processes::reports() {
  std::vector<std::string> all;
  for (std::size_t index = 0; index < children_.size(); ++index) {
    if (children_[index].pid != 0) all.push_back(report(index));
  }
  return all;
}

Gate::Gate() : event_(::eventfd(0, EFD_SEMAPHORE)) {}
Gate::~Gate() { ::close(event_); }

void Gate::open(int count) const {
  const std::uint64_t added = static_cast<std::uint64_t>(count);
  if (::write(event_, &added, sizeof added) != sizeof added) std::abort();
}

void Gate::wait() const {
  std::uint64_t taken = 0;
  if (::read(event_, &taken, sizeof taken) != sizeof taken) std::abort();
}

}  // namespace tutti::test
