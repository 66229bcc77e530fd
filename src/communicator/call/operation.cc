#include "src/communicator/call/operation.h"

namespace tutti {

Result<bool> advance_all(std::vector<std::unique_ptr<Operation>>& operations) {
  bool any = false;
  for (auto& operation : operations) {
    const bool done = TUTTI_TRY(operation->advance());
    if (!done) continue;
    operation.reset();
    any = true;
  }
  std::erase(operations, nullptr);
  return any;
}

Status drive(std::vector<std::unique_ptr<Operation>>& operations) {
  while (!operations.empty()) {
    const bool any = TUTTI_TRY(advance_all(operations));
    if (!any && !operations.empty()) TUTTI_CHECK_OK(operations.front()->wait());
  }
  return {};
}

}  // namespace tutti
