// Ranks as real processes: each runs a function in a forked child and reports one text through a pipe.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace tutti {

class Processes {
 public:
  using Work = std::function<std::string()>;
  Processes() = default;
  ~Processes();  // Kills what still runs.
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  void start(const Work& work);
  void kill(std::size_t index);
  // What the process returned, or "killed by signal 9"; waits for its end.
  std::string report(std::size_t index);
  std::vector<std::string> reports();

 private:
  struct Child {
    pid_t pid = 0;
    int pipe = -1;
  };
  std::vector<Child> children_;
};

// A gate that all processes forked later share: wait() returns in as many of them as open() was called for.
class Gate {
 public:
  Gate();
  ~Gate();
  void open(int count = 1) const;
  void wait() const;

 private:
  int event_;
};

}  // namespace tutti
