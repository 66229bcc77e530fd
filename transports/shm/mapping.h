// Mapping of a shared memory file in this process. Ranks that are threads of one process use a common mapping. They
// therefore synchronize through the same addresses, which ThreadSanitizer can follow, and page tables are filled once.
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
  // Creates a mapping for one owner, who may call move_to() and make_private().
  static Result<std::shared_ptr<Mapping>> make(int file, std::size_t bytes);
  // Returns the process's common mapping of the file if it holds `bytes`, or else creates it. The mapping does not
  // exist in a forked child. Thread-safe.
  static Result<std::shared_ptr<Mapping>> share(int file, std::size_t bytes);

  Mapping() = default;  // Maps nothing.
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

  // Only for mappings from make().
  Status move_to(int file, std::byte* address);
  Status make_private();  // Leaves a private copy at the address, which the caller owns from then on.

  // Identity of a file. It is unique as long as the file is open or mapped.
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
