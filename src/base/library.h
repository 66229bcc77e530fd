// A shared library loaded at run time. Its symbols stay local.
#pragma once

#include <dlfcn.h>

#include <string>

#include "src/base/owned.h"
#include "src/base/status.h"

namespace tutti {

class Library {
 public:
  // Loads the library. Returns unsupported with the loader's message if that fails. The destructor unloads it.
  static Result<Library> open(const std::string& name) {
    Library library;
    library.handle_.reset(::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL));
    if (!library.handle_) return unsupported(::dlerror());
    return library;
  }

  // Looks up a function. Returns false if the library has no such symbol.
  template <typename Function>
  bool find(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(::dlsym(handle_.get(), name));
    return function != nullptr;
  }

 private:
  Owned<void*, ::dlclose> handle_;
};

}  // namespace tutti
