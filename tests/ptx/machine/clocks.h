// Happens-before, by vector clocks in two levels. A thread block's epoch counts barriers of all its threads: what
// happened in earlier epochs is known to the whole block. Within an epoch, a thread's clock counts its releases.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "tests/ptx/machine/code.h"
#include "tests/ptx/machine/operations.h"

namespace tutti::ptx {

// When and where a thread did something.
struct Event {
  std::uint32_t block = 0;  // Number of the thread block, over all launches; 0: none.
  std::uint32_t epoch = 0;
  std::uint32_t clock = 0;
  std::uint16_t thread = 0;  // Index in the block.
};

struct KnownBlock {
  std::uint32_t block = 0, epochs = 0;  // Epochs before `epochs` are known.
};
struct KnownThread {
  std::uint64_t key = 0;  // Block and thread.
  std::uint32_t epoch = 0, clock = 0;
  static std::uint64_t key_of(std::uint32_t block, std::uint32_t thread) { return std::uint64_t{block} << 16 | thread; }
};

// Knowledge of a thread about other threads. Immutable once it is shared.
struct View {
  std::uint32_t references = 0;
  std::uint64_t ended = 0;           // Operations that ended up to this stamp are known.
  std::uint64_t floor = 0;           // Values that were overwritten up to this number of stores must not be read.
  OperationClock operations;         // These operations are known, too.
  std::vector<KnownBlock> blocks;    // Sorted.
  std::vector<KnownThread> threads;  // Sorted.
};

// Reference to a view, for one thread of the host.
class ViewRef {
 public:
  ViewRef() = default;
  explicit ViewRef(View view) : view_(new View(std::move(view))) { ++view_->references; }
  ViewRef(const ViewRef& other) : view_(other.view_) {
    if (view_ != nullptr) ++view_->references;
  }
  ViewRef(ViewRef&& other) noexcept : view_(std::exchange(other.view_, nullptr)) {}
  ViewRef& operator=(ViewRef other) noexcept {
    std::swap(view_, other.view_);
    return *this;
  }
  ~ViewRef() {
    if (view_ != nullptr && --view_->references == 0) delete view_;
  }
  const View* operator->() const { return view_; }
  const View& operator*() const { return *view_; }
  explicit operator bool() const { return view_ != nullptr; }
  bool operator==(const ViewRef& other) const { return view_ == other.view_; }

 private:
  View* view_ = nullptr;
};

// State of a thread's synchronization.
struct ThreadClocks {
  ViewRef view;  // Never null.
  // Views that relaxed loads saw, by the scope that includes the writer. A fence of this scope adds them to `view`.
  std::array<ViewRef, 3> pending;
  ViewRef fenced;  // The view at the last release fence; later relaxed stores publish it.
  Scope fence_scope = Scope::block;
  std::uint32_t clock = 1;
};

// A thread block, or a copy.
struct BlockRecord {
  std::uint64_t ended = 0;      // Stamp of the operation's end; 0: it runs.
  std::uint32_t operation = 0;  // Number of the launch or copy.
  int device = 0;
  std::uint32_t chain = 0, number = 0;  // Place in the order of operations; number 0: none.
};

// All thread blocks and copies of the machine's life, by number.
class Clocks {
 public:
  Clocks() { records_.emplace_back(); }

  std::uint32_t add_block(const BlockRecord& record);
  void end_block(std::uint32_t block, std::uint64_t stamp) { records_[block].ended = stamp; }
  const BlockRecord& record(std::uint32_t block) const { return records_[block]; }

  // True if `event` happens before what the thread `self`, which is at `now` and has `view`, does next.
  bool ordered(const Event& event, const Event& now, const View& view) const {
    if (event.block == now.block) {
      if (event.thread == now.thread || event.epoch < now.epoch) return true;
    }
    return knows(event, view);
  }

  // Both views. Returns `a` itself if it contains `b`.
  ViewRef join(const ViewRef& a, const ViewRef& b) const;

  // The view, and what the thread did up to `now`.
  ViewRef with_self(const ViewRef& view, const Event& now) const;

  // True if the view includes the end of the block's launch.
  bool is_known(std::uint32_t block, const View& view) const {
    const BlockRecord& record = records_[block];
    if (record.ended != 0 && record.ended <= view.ended) return true;
    return record.number != 0 && contains(view.operations, record.chain, record.number);
  }

  HostClock& host() { return host_; }

  // The smallest scope that includes both blocks. Block 0 is the host or another process.
  Scope scope_of(std::uint32_t block, std::uint32_t other_block) const {
    if (block == other_block) return Scope::block;
    if (block == 0 || other_block == 0) return Scope::system;
    return records_[block].device == records_[other_block].device ? Scope::device : Scope::system;
  }

  // True if two accesses with these scopes synchronize.
  bool in_scope(std::uint32_t block, Scope scope, std::uint32_t other_block, Scope other_scope) const;

 private:
  bool knows(const Event& event, const View& view) const;
  std::vector<BlockRecord> records_;
  HostClock host_;
};

}  // namespace tutti::ptx
