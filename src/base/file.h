// An open file descriptor of any kind, which closes itself.
#pragma once

#include <unistd.h>

#include "src/base/owned.h"

namespace tutti {

using File = Owned<int, ::close, -1>;

}  // namespace tutti
