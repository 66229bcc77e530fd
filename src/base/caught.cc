#include "src/base/caught.h"

namespace tutti {

Status status_of(const std::exception& error) noexcept {
  try {
    return internal_error(error.what());
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

}  // namespace tutti
