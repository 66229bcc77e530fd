// The Python module of the C++ path: create() makes a process group.

#include <torch/csrc/utils/pybind.h>

#include <pybind11/chrono.h>

#include "python/tutti/torch/native/process_group.h"

namespace tutti_torch {
namespace {

namespace py = pybind11;

c10::intrusive_ptr<c10d::Backend> create(const StorePtr& store, int rank, int size, const OptionsPtr& options) {
  return c10::make_intrusive<ProcessGroupTutti>(store, rank, size, options);
}

ProcessGroupTutti& group_of(const c10::intrusive_ptr<c10d::Backend>& backend) {
  auto* group = dynamic_cast<ProcessGroupTutti*>(backend.get());
  TUTTI_CHECK_ARGUMENT(group != nullptr, "the backend is ", backend->getBackendName(),
                       "; pass one of the C++ path of tutti");
  return *group;
}

void attach_residual(const c10::intrusive_ptr<c10d::Backend>& backend, const at::Tensor& buffer,
                     const at::Tensor& residual) {
  group_of(backend).attach_residual(buffer, residual);
}

void detach_residual(const c10::intrusive_ptr<c10d::Backend>& backend, const at::Tensor& buffer) {
  group_of(backend).detach_residual(buffer);
}

// Converts errors of the library to the exceptions of tutti.torch, in all functions of PyTorch that pybind11 binds.
void translate(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const LibraryError& error) {
    const py::object rank = error.rank == kUnknownRank ? py::object(py::none()) : py::object(py::int_(error.rank));
    const py::object made =
        py::module_::import("tutti.torch._errors").attr("error_of")(static_cast<int>(error.status), error.msg(), rank);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
  }
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  py::module_::import("torch._C._distributed_c10d");
  py::register_exception_translator(&translate);
  py::class_<Options, OptionsPtr, c10d::Backend::Options>(module, "Options")
      .def(py::init<Milliseconds>(), py::arg("timeout"))
      .def_readwrite("compression", &Options::compression)
      .def_readwrite("max_relative_error", &Options::max_relative_error)
      .def_readwrite("compression_rounding", &Options::compression_rounding)
      .def_readwrite("joins_later", &Options::joins_later)
      .def_readwrite("replaces_gloo", &Options::replaces_gloo)
      .def_readwrite("communicator_name", &Options::communicator_name)
      .def_readwrite("host", &Options::host)
      .def_readwrite("compression_seed", &Options::compression_seed);
  module.def("create", &create, py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("options"),
             py::call_guard<py::gil_scoped_release>());
  module.def(
      "end_open_groups", [](bool aborts) { end_open_groups(aborts ? OpenCalls::kAbort : OpenCalls::kWait); },
      py::arg("aborts"), py::call_guard<py::gil_scoped_release>());
  module.def("attach_residual", &attach_residual, py::arg("backend"), py::arg("buffer"), py::arg("residual"),
             py::call_guard<py::gil_scoped_release>());
  module.def("detach_residual", &detach_residual, py::arg("backend"), py::arg("buffer"),
             py::call_guard<py::gil_scoped_release>());
}

}  // namespace tutti_torch
