// UCX's context and worker, shared by all carriers of one source. A thread that makes the worker progress stores
// arrivals for all of them; each carrier reports its own later.
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
#include "transports/device_block.h"
#include "transports/half_lane.h"
#include "transports/ucx/library.h"

namespace tutti {

class UcxEnd;

class UcxEngine : public std::enable_shared_from_this<UcxEngine> {
 public:
  static Result<std::shared_ptr<UcxEngine>> make();
  UcxEngine(const UcxEngine&) = delete;
  UcxEngine& operator=(const UcxEngine&) = delete;

  // Held around all below, but for allocate() and reach(), and while UCX calls back.
  std::mutex& mutex() { return mutex_; }

  // Known to UCX for as long as it lives, and freed without the lock. Keeps the engine.
  Result<LaneMemory> allocate(std::size_t bytes);
  Result<ReachedBlock> reach(const DeviceBlock& block);
  // Registration of a range, or part of one. Without a handle: not registered.
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

  void enroll(std::uint64_t token, UcxEnd& end) { ends_.emplace(token, &end); }
  void progress();
  // It has been asked how much has arrived, and cannot answer from where it is.
  void owe_answer(UcxEnd& end) { asked_.push_back(&end); }
  // False: there is something to take in already.
  bool arm();
  // Waits, a second at most for all ends that part together, for the other end to have what was put; then closes it.
  // Returns without the lock.
  void part(std::unique_ptr<UcxEnd> end, std::unique_lock<std::mutex>& lock);

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
  void wait_a_little(std::unique_lock<std::mutex>& lock) const;
  UcxEnd* find(std::uint64_t token) const;
  static ucs_status_t take_message(void* engine, const void* header, std::size_t header_bytes, void* data,
                                   std::size_t bytes, const ucp_am_recv_param_t* how);
  static ucs_status_t take_word(void* engine, const void* header, std::size_t header_bytes, void* data,
                                std::size_t bytes, const ucp_am_recv_param_t* how);

  std::mutex mutex_;
  Context context_;
  Worker worker_;
  int descriptor_ = -1;
  std::vector<std::byte> address_;
  std::unordered_map<std::uint64_t, UcxEnd*> ends_;  // By token.
  std::vector<UcxEnd*> asked_;
  std::map<const std::byte*, Registered> registered_;
  Deadline parting_;            // Common deadline of all ends that close one after another.
  std::int64_t parted_ns_ = 0;  // the last of them at this time.
};

}  // namespace tutti
