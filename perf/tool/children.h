// Starts child processes and waits for them.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace perf {

// Call before the first child is started, so that no exit is missed. Each child calls release_child_signals().
void hold_child_signals();
void release_child_signals();

struct Children {
  struct Child {
    std::string name;  // "process 3"
    pid_t pid = 0;     // 0: it has ended.
  };
  std::vector<Child> all;
  // Describes how a failed child ended, such as "was ended by signal 9 (Killed)". Null: default text.
  std::function<std::string(int status)> describe;
  int good = 0;  // Exit status for result 0; good + 1 stands for result 1. Other statuses are failures.
  // Polled while waiting: received() is called when the descriptor is readable, until it returns false. -1: not used.
  int descriptor = -1;
  std::function<bool()> received;
  // Ends the remaining children after a failure, once they had time to notice it themselves. Called repeatedly while
  // some still run. Null: they are killed.
  std::function<void()> end;

  void kill_all() const;
};

std::string describe_end(int status);

// Waits for all children. Returns the highest status, or 2 if one failed. Only the first failure is printed on stderr,
// since later ones follow from it.
int watch(Children& children);

}  // namespace perf
