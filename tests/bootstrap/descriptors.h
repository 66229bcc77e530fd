// Limit of the file descriptors of the process.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>

namespace tutti::test {

// During its lifetime, this process may open only this many more files.
class FewDescriptors {
 public:
  explicit FewDescriptors(int spare) {
    const int next = ::dup(STDIN_FILENO);
    ::close(next);
    if (next < 0 || ::getrlimit(RLIMIT_NOFILE, &before_) != 0) std::abort();
    const rlimit few = {static_cast<rlim_t>(next + spare), before_.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &few) != 0) std::abort();
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_ = {};
};

}  // namespace tutti::test
