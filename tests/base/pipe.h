// A pipe between ranks of a test, for messages outside the library.
#pragma once

#include <unistd.h>

#include <cstdlib>

#include "src/base/file.h"

namespace tutti::test {

struct Pipe {
  Pipe() {
    int ends[2];
    if (::pipe(ends) != 0) std::abort();
    reading.reset(ends[0]);
    writing.reset(ends[1]);
  }
  File reading, writing;
};

}  // namespace tutti::test
