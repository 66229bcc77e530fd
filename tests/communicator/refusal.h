// Failing allocations in a thread of a test. Replaces the program's operator new.
#pragma once

#include <cstdint>

namespace tutti::test {

// Makes the `which`-th allocation of this thread from now on fail.
class Refusal {
 public:
  explicit Refusal(std::uint64_t which);
  ~Refusal();
  Refusal(const Refusal&) = delete;
  Refusal& operator=(const Refusal&) = delete;
  bool came() const;
};

}  // namespace tutti::test
