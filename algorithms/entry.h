// Base class of catalogue entries: name, summary and supported problems. Cost laws use the symbols defined in
// cost_law.h.
#pragma once

#include <cstdint>

#include "src/plan/algorithm.h"

namespace tutti {

// Base is Algorithm, or Sequence for compositions. Supports the collective for any number of ranks, in place or not.
template <typename Base>
class Entry : public Base {
 public:
  Entry(Collective collective, const char* name, const char* summary)
      : collective_(collective), name_(name), summary_(summary) {}

  const char* name() const override { return name_; }
  const char* summary() const override { return summary_; }
  bool supports(const Problem& problem) const override {
    return problem.collective == collective_ && problem.ranks > 0 && problem.root < problem.ranks;
  }

 private:
  Collective collective_;
  const char* name_;
  const char* summary_;
};

// Access to the memory of all ranks: to that of one peer after the other, or to all at once, where switches can do
// that.
enum class PeerAccess : std::uint8_t { each_peer, switches };

// Returns the object of an algorithm without parameters, which the first call creates.
template <typename Type>
const Algorithm& instance_of() {
  static const Type algorithm;
  return algorithm;
}

}  // namespace tutti
