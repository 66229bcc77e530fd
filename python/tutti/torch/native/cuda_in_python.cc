#include "python/tutti/torch/native/cuda_in_python.h"

#include <pybind11/pybind11.h>

#include <map>
#include <mutex>

namespace tutti_torch {

namespace py = pybind11;

namespace {

bool ask(const char* function) {
  const py::gil_scoped_acquire gil;
  return py::module_::import("torch.cuda").attr(function)().cast<bool>();
}

}  // namespace

bool cuda_is_initialized() { return ask("is_initialized"); }
bool current_stream_is_captured() { return ask("is_current_stream_capturing"); }

void* cuda_stream_of(const c10::Stream& stream) {
  static std::mutex mutex;
  static std::map<uint64_t, void*>& handles = *new std::map<uint64_t, void*>;
  const uint64_t key = stream.hash();
  {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = handles.find(key);
    if (found != handles.end()) return found->second;
  }
  const c10::StreamData3 data = stream.pack3();
  uintptr_t handle = 0;
  {
    const py::gil_scoped_acquire gil;
    const py::object made = py::module_::import("torch.cuda")
                                .attr("Stream")(py::arg("stream_id") = data.stream_id,
                                                py::arg("device_index") = static_cast<int>(data.device_index),
                                                py::arg("device_type") = static_cast<int>(data.device_type));
    handle = made.attr("cuda_stream").cast<uintptr_t>();
  }
  const std::lock_guard<std::mutex> lock(mutex);
  return handles[key] = reinterpret_cast<void*>(handle);  // NOLINT: an address from Python.
}

}  // namespace tutti_torch
