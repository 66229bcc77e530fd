#include "perf/tool/children.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "perf/tool/fail.h"

namespace perf {
namespace {

constexpr int kGraceMs = 2000;

sigset_t child_ends() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGCHLD);
  return set;
}

// Records one child that has ended. Returns true if there was one.
bool reap(Children& children, int& result) {
  int status = 0;
  const pid_t ended = ::waitpid(-1, &status, WNOHANG);
  if (ended < 0) fail("waitpid: %s", std::strerror(errno));
  if (ended == 0) return false;
  for (Children::Child& child : children.all) {
    if (child.pid != ended) continue;
    child.pid = 0;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) - children.good : -1;
    const bool finished = code == 0 || code == 1;
    if (finished) result = std::max(result, code);
    if (finished || result == 2) continue;
    const std::string how = children.describe ? children.describe(status) : describe_end(status);
    std::fprintf(stderr, "%s: %s (pid %d) %s\n", program_name(), child.name.c_str(), static_cast<int>(ended),
                 how.c_str());
    result = 2;
  }
  return true;
}

}  // namespace

void hold_child_signals() {
  const sigset_t set = child_ends();
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
}

void release_child_signals() {
  const sigset_t set = child_ends();
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

void Children::kill_all() const {
  for (const Child& child : all) {
    if (child.pid > 0) ::kill(child.pid, SIGKILL);
  }
}

std::string describe_end(int status) {
  if (WIFSIGNALED(status))
    return "was ended by signal " + std::to_string(WTERMSIG(status)) + " (" + ::strsignal(WTERMSIG(status)) + ")";
  return "ended with status " + std::to_string(WEXITSTATUS(status));
}

int watch(Children& children) {
  const sigset_t set = child_ends();
  const int signals = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0) fail("signalfd: %s", std::strerror(errno));
  int result = 0;
  const auto runs = [](const Children::Child& child) { return child.pid > 0; };
  while (std::any_of(children.all.begin(), children.all.end(), runs)) {
    if (reap(children, result)) continue;
    pollfd polled[] = {{signals, POLLIN, 0}, {children.descriptor, POLLIN, 0}};
    const int ready = ::poll(polled, 2, result == 2 ? kGraceMs : -1);
    if (ready == 0 && children.end) children.end();
    if (ready == 0 && !children.end) children.kill_all();
    signalfd_siginfo taken;
    if (polled[0].revents != 0) (void)!::read(signals, &taken, sizeof taken);
    if (polled[1].revents != 0 && !children.received()) children.descriptor = -1;
  }
  ::close(signals);
  return result;
}

}  // namespace perf
