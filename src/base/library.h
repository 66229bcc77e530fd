// A library that is opened at run time, if it is there. Its symbols stay its own.
#pragma once

#include <dlfcn.h>

#include <string>

#include "src/base/owned.h"
#include "src/base/status.h"

namespace tutti {

class Library {
 public:
  // unsupported, with the loader's reason, where it is not there. Closed with the object.
  static Result<Library> open(const std::string& name) {
    Library library;
    library.handle_.reset(::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL));
    if (!library.handle_) return unsupported(::dlerror());
    return library;
  }

  // False: it has no such function.
  template <typename Function>
  bool find(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(::dlsym(handle_.get(), name));
    return function != nullptr;
  }

 private:
  Owned<void*, ::dlclose> handle_;
};

}  // namespace tutti
