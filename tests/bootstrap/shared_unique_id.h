// Unique id for ranks that are processes of this host.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>

#include "src/bootstrap/bootstrap.h"
#include "tests/bootstrap/processes.h"

namespace tutti::test {

inline RendezvousOptions here() {
  RendezvousOptions options;
  options.scope = ListenScope::host;
  return options;
}

// A unique id, and the child process that created it and runs the rendezvous in a thread. The test's process must not
// have threads, because sanitizers do not support forks of processes with threads.
class Meeting {
 public:
  explicit Meeting(const RendezvousOptions& options = here())
      : Meeting([&options] { return make_unique_id(options); }) {}
  explicit Meeting(const std::function<Result<UniqueId>()>& make) {
    const Gate made;
    host_.start([&]() -> std::string {
      Result<UniqueId> id = make();
      if (!id.ok()) std::abort();
      *id_ = id.value();
      made.open();
      for (;;) ::pause();
    });
    made.wait();
  }
  const UniqueId& id() const { return *id_; }
  void kill() { host_.kill(0); }

 private:
  Shared<UniqueId> id_;
  Processes host_;
};

}  // namespace tutti::test
