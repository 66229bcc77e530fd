// What every algorithm of the catalogue says of itself, so that its file holds only the algorithm.
// Cost laws in these files: a = time of one dependent message, b = time per byte of one link, n ranks, S bytes in the
// largest buffer of the call. Bytes are those that a rank sends.
#pragma once

#include "src/plan/algorithm.h"

namespace tutti {

// Base: Algorithm, or Sequence for a composition. Supports its collective for any number of ranks, in place or not.
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

}  // namespace tutti
