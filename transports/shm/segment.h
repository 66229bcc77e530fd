// Memory that processes of one host share: an anonymous file that lives as long as somebody maps it or holds its
// descriptor. It has no name anywhere, so nothing is left behind, not even after SIGKILL, and /dev/shm's size is
// no limit.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "src/base/owned.h"
#include "src/base/status.h"
#include "transports/shm/mapping.h"

namespace tutti {

using File = Owned<int, ::close, -1>;

// Visibility of a segment in a forked child: user memory is kept. Lanes are dropped, so that a child faults instead of
// corrupting them.
enum class Forked : std::uint8_t { dropped, kept };

class Segment {
 public:
  // A new segment of zeros, sealed against shrinking: a peer cannot make us fault. Untouched pages cost nothing.
  static Result<Segment> create(const char* name, std::size_t bytes, Forked forked = Forked::dropped);
  // A peer's. Takes the descriptor over; fails if the file is shorter than `bytes` or may shrink. A segment that this
  // process has already, be it its own, is seen at the same address, unless forks keep it.
  static Result<Segment> adopt(File file, std::size_t bytes);

  std::byte* data() const { return mapping_ == nullptr ? nullptr : mapping_->data(); }
  std::size_t size() const { return mapping_ == nullptr ? 0 : mapping_->bytes(); }  // An adopted segment may be larger.
  Result<File> duplicate() const;                                                   // Another descriptor of it.
  int descriptor() const { return file_.get(); }                                    // Stays ours.
  // Maps it at `address` instead, over what is there. Owned by the caller again after make_private(), which leaves a
  // private copy at the same address. Both are for a segment that forks keep.
  Status move_to(std::byte* address) { return mapping_->move_to(file_.get(), address); }
  Status make_private() { return mapping_->make_private(); }
  void close_descriptor() { file_.reset(); }  // Keeps the mapping.

 private:
  File file_;
  std::shared_ptr<Mapping> mapping_;  // With the other ranks of this process that use the segment.
};

}  // namespace tutti
