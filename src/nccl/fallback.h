// Another libnccl.so.2, NVIDIA's, for functions that this library does not implement. TUTTI_NCCL_FALLBACK names it.
// Each communicator then has a communicator of that library with the same ranks beside its own.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "src/nccl/abi.h"
#include "src/nccl/errors.h"
#include "src/nccl/exchange.h"

namespace tutti::nccl {

// Loaded once for each path, and never unloaded. Thread-safe.
class FallbackLibrary {
 public:
  // Returns the library that the environment names now; null if it names none. Fails if the library cannot be loaded,
  // is this one, is older than kVersion, or lacks a function that every communicator needs.
  static Outcome find(FallbackLibrary*& library);

  ~FallbackLibrary();
  FallbackLibrary(const FallbackLibrary&) = delete;
  FallbackLibrary& operator=(const FallbackLibrary&) = delete;

  int version() const { return version_; }
  const std::string& path() const { return path_; }
  // Stores the function that runs instead of one of this library, `name`. Logs the first use of each.
  template <typename Function>
  Outcome get(const char* name, Function*& function) {
    void* found = nullptr;
    TUTTI_NCCL_CHECK(get(name, &found));
    function = reinterpret_cast<Function*>(found);
    return {};
  }
  // Calls a function that find() has checked. The arguments have exactly the types of its parameters.
  template <typename... Arguments>
  ncclResult_t call(const char* name, Arguments... arguments) const {
    return reinterpret_cast<ncclResult_t (*)(Arguments...)>(symbol(name))(arguments...);
  }
  // Converts a result of the library, with its error text.
  Outcome outcome(const char* name, ncclResult_t result) const;
  // Like call(), and converts the result.
  template <typename... Arguments>
  Outcome run(const char* name, Arguments... arguments) const {
    return outcome(name, call(name, arguments...));
  }

 private:
  explicit FallbackLibrary(std::string path) : path_(std::move(path)) {}
  Outcome load();
  Outcome check_version();
  Outcome get(const char* name, void** function);
  void* symbol(const char* name) const;

  const std::string path_;
  void* handle_ = nullptr;
  int version_ = 0;
  std::mutex mutex_;
  std::set<std::string> used_;
};

struct FallbackWindow {
  void* memory;
  std::size_t size;
  int flags;
};

// A communicator of the fallback library. Thread-safe.
class Fallback {
 public:
  // Collective, only if the environment names a library. Fails on all ranks if it fails on one.
  static Outcome create(const Exchange& exchange, int device, std::unique_ptr<Fallback>& made);
  // Destroys the communicator, or aborts it if it has failed. NCCL's destroy may wait for ranks of the same host.
  ~Fallback();
  Fallback(const Fallback&) = delete;
  Fallback& operator=(const Fallback&) = delete;

  FallbackLibrary& nccl() const { return library_; }
  ncclComm_t comm() const { return comm_; }  // Null after abort().
  // Returns success, in progress, or the failure of the communicator; success after abort(). Any thread may call it.
  Outcome state();
  // Ends all calls of the communicator. Any thread may call it.
  void abort();
  // Like ncclCommFinalize. No-op after abort().
  Outcome finalize();
  // Collective, like ncclCommWindowRegister, but waits until the window exists. The window is null if the memory cannot
  // be shared. Not for a thread that has a group of the library open.
  Outcome register_window(const FallbackWindow& window, ncclWindow_t& made);
  // No-op after abort(), which ends all windows.
  Outcome deregister_window(ncclWindow_t window);

 private:
  explicit Fallback(FallbackLibrary& library) : library_(library) {}
  void end_by(const char* function);
  Outcome poll(ncclResult_t& now);
  Outcome complete(const char* function, ncclResult_t result);
  Outcome join(const Exchange& exchange, int device);
  Outcome init(const Exchange& exchange, int device, const ncclUniqueId& id);
  Outcome wait_for_ranks(const Exchange& exchange);

  FallbackLibrary& library_;
  std::mutex mutex_;  // Held while comm_ is polled or replaced.
  std::atomic<ncclComm_t> comm_ = nullptr;
};

}  // namespace tutti::nccl
