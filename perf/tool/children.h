// Processes that a program has started, and waits for.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace perf {

// To be called before the first is started, so that none ends unnoticed; and in each of them.
void hold_child_signals();
void release_child_signals();

struct Children {
  struct Child {
    std::string name;  // "process 3"
    pid_t pid = 0;     // 0: it has ended.
  };
  std::vector<Child> all;
  // How one that failed has ended: "was ended by signal 9 (Killed)"; null: in the usual words.
  std::function<std::string(int status)> describe;
  int good = 0;  // Exit status of a finished child with result 0; one more is result 1.
  // Listened to meanwhile: `heard` is called when it can be read, until it returns false. -1: nothing.
  int descriptor = -1;
  std::function<bool()> received;
  // After a failure, when the others have had time to notice by themselves: ends those that still run. Called again
  // while there are some. Null: they are killed.
  std::function<void()> end;

  void kill_all() const;
};

std::string describe_end(int status);

// Waits for all. The highest status, 2 if one has failed: then the first to fail is named on stderr, since the others'
// ends follow from it.
int watch(Children& children);

}  // namespace perf
