// Communicators of all ranks of a test, by rank.
#pragma once

#include <memory>
#include <vector>

#include "src/communicator/communicator.h"

namespace tutti::test {

using Communicators = std::vector<std::unique_ptr<Communicator>>;

}  // namespace tutti::test
