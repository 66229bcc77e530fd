// The options of a command line, as they are read: what holds for all of them.
#pragma once

#include <vector>

#include "src/base/status.h"

namespace tutti::tool {

class GivenOptions {
 public:
  // `option`: what getopt_long() returned; `value`: null where it takes none. invalid_argument where the value is
  // empty, or where the option is there for a second time. What getopt_long() could not read is left to others.
  Status add(int option, const char* value);
  bool has(int option) const;

 private:
  std::vector<int> given_;
};

}  // namespace tutti::tool
