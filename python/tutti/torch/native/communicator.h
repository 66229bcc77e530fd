#pragma once
// Owner of a Tutti communicator. One thread at a time makes calls on it; CallQueue provides this order.

#include <c10/util/Exception.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <string>

#include "tutti/tutti.h"

namespace tutti_torch {

constexpr int kUnknownRank = -1;

// A failure of the library. Python sees the subclass of tutti.Error for its status, which is a DistBackendError, too.
class LibraryError : public c10::DistBackendError {
 public:
  // `text` as of tutti_last_error(); may be empty.
  LibraryError(tutti_status status, const std::string& text, int rank = kUnknownRank);

  // Returns whether later calls of the group fail, too.
  bool fails_group() const { return status != tutti_invalid_argument && status != tutti_unsupported; }

  tutti_status status;
  int rank;  // This process in its group.
};

// Throws the error of this thread's last call unless `status` is tutti_ok.
void check(tutti_status status, int rank = kUnknownRank);

// Throws the error of an invalid argument, with the other arguments as text, unless `condition` holds.
#define TUTTI_CHECK_ARGUMENT(condition, ...)                                                          \
  do {                                                                                                \
    if (!(condition)) throw tutti_torch::LibraryError(tutti_invalid_argument, c10::str(__VA_ARGS__)); \
  } while (false)

LibraryError shut_down_error(int rank);

// Communicator and stream of a call.
struct CallContext {
  tutti_comm comm = nullptr;
  tutti_stream stream = nullptr;  // In device memory, null is the default stream.
};

// Opens a group of the C API for its lifetime. end() runs the calls.
class CallGroup {
 public:
  CallGroup() { check(tutti_group_start()); }
  ~CallGroup() {
    if (open_) tutti_group_end();
  }
  CallGroup(const CallGroup&) = delete;
  CallGroup& operator=(const CallGroup&) = delete;
  void end() {
    open_ = false;
    check(tutti_group_end());
  }

 private:
  bool open_ = true;
};

// Owner of a handle. Without one, before reconfigure(), it refuses calls.
class Communicator {
 public:
  // Takes over `comm`, whose calls wait `timeout` at most, or is null. `rank`: this process in `comm`, for errors.
  Communicator(tutti_comm comm, std::chrono::milliseconds timeout, int rank);
  // Leaves the communicator without waiting for peers, except in a child of fork(), which must not touch it.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Returns the handle for calls that wait `timeout` at most. Throws without one, and after leave().
  tutti_comm handle(std::chrono::milliseconds timeout);

  // Returns the handle without a change of its timeout. Throws without one, and after leave().
  tutti_comm default_handle() const;

  // Returns whether it has a handle.
  bool is_open() const { return comm_ != nullptr; }

  // Returns why calls have failed, or null. Any thread may call it.
  std::exception_ptr failure();

  // Notes that the program knows of a failure, so that leave() does not warn of it. Any thread may call it.
  void note_raised() { raised_ = true; }

  // Ends all waits on this rank and its peers. Any thread may call it.
  void abort();

  // Ends the use of the communicator. Idempotent, and waits for a concurrent call. May wait, so the caller does not
  // hold the GIL. Warns of a failure that no call of this rank has raised: the root of a broadcast only sends.
  void leave();

 private:
  // Keeps the failure of the communicator, if it has one. Needs leaving_.
  void find_failure();

  std::atomic<tutti_comm> comm_;
  std::chrono::milliseconds timeout_;
  tutti_comm view_ = nullptr;  // Handle with the timeout of the last call that had another one. Destroyed with comm_.
  std::chrono::milliseconds view_timeout_{0};
  int rank_;
  std::mutex leaving_;          // Held by leave() and failure().
  std::exception_ptr failure_;  // Also after leave(). Guarded by leaving_.
  std::atomic<bool> raised_{false};
  int process_;
  bool has_members_;
};

}  // namespace tutti_torch
