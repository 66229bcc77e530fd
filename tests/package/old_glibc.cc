// A shared library that uses what glibc has added or moved since 2.28, directly or through libstdc++ and libgcc.
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

// Aborts the process if the exception does not arrive, since then std::terminate() is called.
bool catches_exception(const std::string& text) {
  try {
    throw std::runtime_error(text);
  } catch (const std::exception& error) {
    return text == error.what();
  }
}

// Spurious wake-ups are rare.
bool waits_until_deadline() {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  int wake_ups = 1;
  while (never.wait_until(lock, deadline) != std::cv_status::timeout) ++wake_ups;
  return wake_ups < 10;
}

// Equal numbers are as likely as one in 2^64.
bool numbers_differ() {
  std::random_device device;
  const auto draw = [&] { return std::uint64_t{device()} << 32 | device(); };
  return draw() != draw();
}

bool thread_has_own_id() {
  const auto own = std::make_shared<pid_t>(0);
  std::thread([copy = own] { *copy = gettid(); }).join();
  return gettid() == getpid() && *own > 0 && *own != getpid();
}

bool knows_files() {
  struct stat file = {};
  return std::filesystem::is_directory("/") && ::stat("/", &file) == 0 && S_ISDIR(file.st_mode) &&
         ::lstat("/", &file) == 0 && ::fstat(STDOUT_FILENO, &file) == 0 && ::stat("/nonexistent", &file) == -1;
}

}  // namespace

extern "C" const char* old_glibc_failure(double eight) {
  if (!catches_exception("caught")) return "an exception changed its text";
  if (!waits_until_deadline()) return "a wait ends before its deadline";
  if (!numbers_differ()) return "std::random_device repeats a number";
  if (!thread_has_own_id()) return "gettid() does not distinguish threads";
  if (!knows_files()) return "stat() is wrong";
  if (std::exp2(eight) != 256 || std::log2(eight) != 3) return "exp2() or log2() is wrong";
  if (::dlsym(RTLD_DEFAULT, "malloc") == nullptr) return "dlsym() finds no malloc()";
  return nullptr;
}
