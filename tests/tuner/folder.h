// Temporary folder for a test's tune file.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>

namespace tutti::test {

// A new, empty folder. The destructor deletes it with its contents.
class Folder {
 public:
  Folder() { EXPECT_NE(::mkdtemp(name_.data()), nullptr); }
  ~Folder() { std::filesystem::remove_all(name_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string operator/(const std::string& name) const { return name_ + "/" + name; }
  std::string file() const { return *this / "tune"; }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(name_), std::filesystem::directory_iterator()));
  }

 private:
  std::string name_ = "/tmp/tutti-tune-XXXXXX";
};

}  // namespace tutti::test
