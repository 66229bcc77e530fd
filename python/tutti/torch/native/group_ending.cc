#include "python/tutti/torch/native/group_ending.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "python/tutti/torch/native/gil.h"

namespace tutti_torch {
namespace {

std::mutex open_mutex;
std::vector<std::weak_ptr<GroupEnding>>& open_groups = *new std::vector<std::weak_ptr<GroupEnding>>;

}  // namespace

void GroupEnding::shutdown() {
  const WithoutGil without_gil;
  queue->stop();
  device_calls->end(OpenCalls::kWait);
  communicator->leave();  // Ends all messages.
  callbacks->stop();
  hooks->stop();
}

void add_open_group(const std::shared_ptr<GroupEnding>& ending) {
  const std::lock_guard<std::mutex> lock(open_mutex);
  std::erase_if(open_groups, [](const std::weak_ptr<GroupEnding>& open) { return open.expired(); });
  open_groups.push_back(ending);
}

void end_open_groups(OpenCalls calls) {
  std::vector<std::shared_ptr<GroupEnding>> endings;
  {
    const std::lock_guard<std::mutex> lock(open_mutex);
    for (const auto& open : open_groups) {
      if (auto ending = open.lock()) endings.push_back(std::move(ending));
    }
  }
  if (calls == OpenCalls::kAbort) {
    for (const auto& ending : endings) {
      ending->communicator->abort();
      ending->device_calls->abort();
    }
  }
  for (const auto& ending : endings) ending->shutdown();
}

}  // namespace tutti_torch
