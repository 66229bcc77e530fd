#include "transports/net_plugin/engine.h"

#include <pthread.h>
#include <strings.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "src/base/log.h"
#include "src/base/split_at.h"
#include "transports/net_plugin/frame.h"

namespace tutti {
namespace {

constexpr const char* kDefaultFile = "libnccl-net.so";

// Number of forks between the process that loaded this library and this one. Calls per message read it, so it is no
// system call.
std::atomic<std::uint32_t> forks = 0;
[[maybe_unused]] const int counted = ::pthread_atfork(nullptr, nullptr, [] { ++forks; });

std::vector<std::string> names_in(const std::string& list) {
  if (list.empty()) return {kDefaultFile};
  std::vector<std::string> names;
  for (const std::string_view each : split_at(list, ','))
    if (!each.empty()) names.emplace_back(each);
  return names;
}

// Returns why Tutti cannot use a device, or "".
std::string unusable(const NetPlugin::Device& device) {
  if ((device.memory_types & nccl_net::kHostMemory) == 0) return "does not support host memory";
  if (device.type != nccl_net::kHostDevice) return "needs processing by a GPU";
  if (device.max_message_bytes < kNetFrameBytes)
    return "permits messages of " + std::to_string(device.max_message_bytes) + " bytes, and Tutti needs " +
           std::to_string(kNetFrameBytes);
  return "";
}

}  // namespace

Result<std::shared_ptr<NetEngine>> NetEngine::make(const NetPluginOptions& options) {
  if (::strcasecmp(options.plugins.c_str(), "none") == 0)
    return unsupported(
        "network plugins are disabled by TUTTI_NET_PLUGIN=none or NCCL_NET_PLUGIN=none: name a plugin, or use "
        "another transport");
  std::string why;
  for (const std::string& name : names_in(options.plugins)) {
    Result<std::shared_ptr<NetEngine>> made = make_with(name, options);
    if (made.ok()) return made;
    why += (why.empty() ? "" : "; ") + std::move(made).status().message();
  }
  if (why.empty()) why = "TUTTI_NET_PLUGIN or NCCL_NET_PLUGIN names no plugin: \"" + options.plugins + "\"";
  return unsupported(why);
}

Result<std::shared_ptr<NetEngine>> NetEngine::make_with(const std::string& name, const NetPluginOptions& options) {
  const NetPlugin* plugin = TUTTI_TRY(NetPlugin::of_process(name));
  const NetPlugin::Context context = TUTTI_TRY(plugin->initialize(options));
  std::shared_ptr<NetEngine> engine(new NetEngine(*plugin, context));
  TUTTI_CHECK_OK(engine->find_devices(options.first_device));
  return engine;
}

NetEngine::NetEngine(const NetPlugin& plugin, const NetPlugin::Context& context)
    : plugin_(plugin), context_(context), forks_(forks) {}

NetEngine::~NetEngine() {
  if (of_this_process()) plugin_.finalize(context_);
}

bool NetEngine::of_this_process() const { return forks_ == forks.load(std::memory_order_relaxed); }

Status NetEngine::find_devices(std::uint32_t first) {
  std::vector<NetPlugin::Device> all = TUTTI_TRY(plugin_.devices());
  std::string why;
  int fastest = 0;
  for (NetPlugin::Device& device : all) {
    const std::string problem = unusable(device);
    if (!problem.empty()) {
      why += "; device " + std::to_string(device.index) + " (" + device.name + ") " + problem;
      continue;
    }
    fastest = std::max(fastest, device.megabits_per_second);
    devices_.push_back({.properties = std::move(device)});
  }
  std::erase_if(devices_, [&](const Device& one) { return one.properties.megabits_per_second < fastest; });
  if (devices_.empty()) return unsupported("network plugin " + plugin_.description() + " has no usable device" + why);
  std::rotate(devices_.begin(), devices_.begin() + static_cast<std::ptrdiff_t>(first % devices_.size()),
              devices_.end());
  return {};
}

NetEngine::Device& NetEngine::next_device() {
  return *std::min_element(devices_.begin(), devices_.end(),
                           [](const Device& a, const Device& b) { return a.carriers < b.carriers; });
}

}  // namespace tutti
