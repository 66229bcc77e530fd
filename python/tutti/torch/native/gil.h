#pragma once
// Release of Python's global interpreter lock (GIL) by code that may wait.

#include <pybind11/pybind11.h>

#include <optional>

namespace tutti_torch {

// Releases the GIL for its lifetime if this thread holds it. Threads that run callbacks of the program need the GIL, so
// code that waits for such a thread must not hold it.
class WithoutGil {
 public:
  WithoutGil() {
    if (Py_IsInitialized() && PyGILState_Check()) released_.emplace();
  }

 private:
  std::optional<pybind11::gil_scoped_release> released_;
};

}  // namespace tutti_torch
