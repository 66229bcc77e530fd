#pragma once
// Owner of a Tutti communicator. One thread at a time makes calls on it; CallQueue provides this order.

#include <chrono>
#include <exception>
#include <map>
#include <string>

#include "tutti/tutti.h"

namespace tutti_torch {

// Throws c10::DistBackendError with the message of this thread's last failed call unless `status` is tutti_ok.
void check(tutti_status status);

// Returns the exception that check() throws. `message` may be empty.
std::exception_ptr backend_error(tutti_status status, const std::string& message);

class Communicator {
 public:
  // Takes over `comm`, whose calls wait `timeout` at most.
  Communicator(tutti_comm comm, std::chrono::milliseconds timeout);
  // Leaves the communicator without waiting for peers, except in a child of fork(), which must not touch it.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Returns the handle for calls that wait `timeout` at most. Throws after leave().
  tutti_comm handle(std::chrono::milliseconds timeout);

  // Returns the handle without a change of its timeout. Throws after leave().
  tutti_comm default_handle() const;

  // Ends all waits on this rank and its peers. Any thread may call it.
  void abort();

  // Ends the use of the communicator. Idempotent.
  void leave();

 private:
  tutti_comm comm_;
  std::chrono::milliseconds timeout_;
  std::map<std::chrono::milliseconds, tutti_comm> views_;  // Destroyed with comm_.
  int process_;
};

}  // namespace tutti_torch
