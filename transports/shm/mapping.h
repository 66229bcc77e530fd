// Where a file of shared memory lies in this process. Ranks that are threads of one process see each other's lanes at
// one address: they synchronise by plain words, as ThreadSanitizer can follow, and the page tables are filled once.
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstddef>
#include <memory>
#include <optional>

#include "src/base/status.h"

namespace tutti {

class Mapping {
 public:
  // One that nobody else finds: its owner may move it, or make it private.
  static Result<std::shared_ptr<Mapping>> make(int file, std::size_t bytes);
  // The one that this process has already if it holds `bytes`, or a new one for the next to find. A forked child does
  // not see it. Any thread.
  static Result<std::shared_ptr<Mapping>> share(int file, std::size_t bytes);

  Mapping() = default;  // Maps nothing.
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

  // Only of one that was not shared.
  Status move_to(int file, std::byte* address);
  Status make_private();  // Leaves a private copy at its address, which is the caller's from now on.

  // A file is the same file as long as somebody holds it open or mapped.
  struct Identity {
    dev_t device;
    ino_t inode;
    auto operator<=>(const Identity&) const = default;
  };

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::optional<Identity> shared_as_;
};

}  // namespace tutti
