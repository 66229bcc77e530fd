// UCX's context and worker, shared by all carriers of one source. A thread that advances the worker stores arrivals for
// all carriers; each carrier reports its own later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/base/clock.h"
#include "src/base/owned.h"
#include "src/base/status.h"
#include "transports/device_region.h"
#include "transports/half_lane.h"
#include "transports/ucx/library.h"

namespace tutti {

class UcxEnd;

class UcxEngine : public std::enable_shared_from_this<UcxEngine> {
 public:
  static Result<std::shared_ptr<UcxEngine>> make();
  UcxEngine(const UcxEngine&) = delete;
  UcxEngine& operator=(const UcxEngine&) = delete;

  // Lock that the functions below require, except allocate() and register_device_memory(). Held during callbacks of
  // UCX.
  std::mutex& mutex() { return mutex_; }

  // Memory registered with UCX. It keeps the engine alive, and must be freed without the lock.
  Result<LaneMemory> allocate(std::size_t bytes);
  Result<RegisteredRegion> register_device_memory(const DeviceRegion& region);
  // Registration of the range that contains some memory. Null handle: not registered.
  struct Registered {
    ucp_mem_h handle = nullptr;
    std::size_t bytes = 0;
    ucs_memory_type_t type = UCS_MEMORY_TYPE_HOST;
    bool on_device = false;
  };
  Registered registered(const LaneMemory& memory) const;

  ucp_worker_h worker() const { return worker_.get(); }
  const std::vector<std::byte>& address() const { return address_; }
  int descriptor() const { return descriptor_; }

  void add(std::uint64_t token, UcxEnd& end) { ends_.emplace(token, &end); }
  void progress();
  // Records that `end` owes an answer, which cannot be sent from within a callback.
  void owe_pong(UcxEnd& end) { requested_.push_back(&end); }
  // Returns false if progress() has work already.
  bool arm();
  // Closes `end`, after waiting until the other end has received everything. Ends that close at about the same time
  // wait for at most a second together. Releases the lock.
  void close(std::unique_ptr<UcxEnd> end, std::unique_lock<std::mutex>& lock);

 private:
  static void clean_up(ucp_context_h context) { ucx().cleanup(context); }
  static void destroy(ucp_worker_h worker) { ucx().worker_destroy(worker); }
  using Context = Owned<ucp_context_h, clean_up>;
  using Worker = Owned<ucp_worker_h, destroy>;

  UcxEngine() = default;
  Status start();
  Status ask_address();
  Result<LaneMemory> add(LaneMemory memory, Registered what);
  void free(std::byte* memory);
  void sleep_briefly(std::unique_lock<std::mutex>& lock) const;
  UcxEnd* find(std::uint64_t token) const;
  static ucs_status_t receive_message(void* engine, const void* header, std::size_t header_bytes, void* data,
                                      std::size_t bytes, const ucp_am_recv_param_t* how);
  static ucs_status_t receive_control(void* engine, const void* header, std::size_t header_bytes, void* data,
                                      std::size_t bytes, const ucp_am_recv_param_t* how);

  std::mutex mutex_;
  Context context_;
  Worker worker_;
  int descriptor_ = -1;
  std::vector<std::byte> address_;
  std::unordered_map<std::uint64_t, UcxEnd*> ends_;  // By token.
  std::vector<UcxEnd*> requested_;
  std::map<const std::byte*, Registered> registered_;
  Deadline close_deadline_;     // Common deadline of ends that close one after another.
  std::int64_t closed_ns_ = 0;  // Time at which the last of them closed.
};

}  // namespace tutti
