// A handle of the operating system or of a C library that releases itself.
//   using Folder = Owned<DIR*, ::closedir>;
#pragma once

#include <utility>

namespace tutti {

template <typename Handle, auto release, Handle none = Handle{}>
class Owned {
 public:
  Owned() = default;
  explicit Owned(Handle handle) : handle_(handle) {}
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, none)) {}
  Owned& operator=(Owned&& other) noexcept {
    if (this != &other) reset(std::exchange(other.handle_, none));
    return *this;
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { reset(); }

  Handle get() const { return handle_; }
  Handle take() { return std::exchange(handle_, none); }  // Releases ownership to the caller.
  explicit operator bool() const { return handle_ != none; }
  void reset(Handle handle = none) {
    if (handle_ != none) release(handle_);
    handle_ = handle;
  }

 private:
  Handle handle_ = none;
};

}  // namespace tutti
