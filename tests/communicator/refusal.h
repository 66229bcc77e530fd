// Failing allocations in a thread of a test. Links a replacement of operator new into the program.
#pragma once

#include <cstdint>

namespace tutti::test {

// Makes the `which`-th allocation of this thread after construction fail. came() returns true once it has failed.
class Refusal {
 public:
  explicit Refusal(std::uint64_t which);
  ~Refusal();
  Refusal(const Refusal&) = delete;
  Refusal& operator=(const Refusal&) = delete;
  bool came() const;
};

}  // namespace tutti::test
