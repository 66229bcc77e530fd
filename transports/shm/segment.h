// Memory shared by processes of one host: an anonymous file that exists as long as it is mapped or open. Without a
// name, nothing is left behind even after SIGKILL, and the size of /dev/shm is no limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "src/base/file.h"
#include "src/base/status.h"
#include "transports/shm/mapping.h"

namespace tutti {

// Behavior in a forked child. kept: the child has it, for user memory. dropped: the child does not, so that it faults
// instead of corrupting lanes.
enum class Forked : std::uint8_t { dropped, kept };

class Segment {
 public:
  // Creates a zeroed segment, sealed against shrinking, so that peers cannot make this process fault. Untouched pages
  // take no memory.
  static Result<Segment> create(const char* name, std::size_t bytes, Forked forked = Forked::dropped);
  // Maps a segment of a peer and takes ownership of the descriptor. Fails if the file is shorter than `bytes` or may
  // shrink. If this process has the segment already, even as its creator, the address is the same, unless it was
  // created as `kept`.
  static Result<Segment> adopt(File file, std::size_t bytes);

  std::byte* data() const { return mapping_ == nullptr ? nullptr : mapping_->data(); }
  std::size_t size() const { return mapping_ == nullptr ? 0 : mapping_->bytes(); }  // An adopted segment may be larger.
  Result<File> duplicate() const;                 // Returns another descriptor of the segment.
  int descriptor() const { return file_.get(); }  // Still owned by the segment.
  // move_to() maps the segment at `address` instead, replacing what is mapped there. make_private() leaves a private
  // copy there, which the caller owns. Both require Forked::kept.
  Status move_to(std::byte* address) { return mapping_->move_to(file_.get(), address); }
  Status make_private() { return mapping_->make_private(); }
  void close_descriptor() { file_.reset(); }  // Keeps the mapping.

 private:
  File file_;
  std::shared_ptr<Mapping> mapping_;  // Shared with other ranks of this process.
};

}  // namespace tutti
