// Memory that a test's thread is refused. Linked in, it replaces the program's operator new.
#pragma once

#include <cstdint>

namespace tutti::test {

// Refuses this thread one allocation, the `which`-th from now on.
class Refusal {
 public:
  explicit Refusal(std::uint64_t which);
  ~Refusal();
  Refusal(const Refusal&) = delete;
  Refusal& operator=(const Refusal&) = delete;
  bool came() const;
};

}  // namespace tutti::test
