// A network plugin as used by one communicator: its context and its devices.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "transports/net_plugin.h"
#include "transports/net_plugin/plugin.h"

namespace tutti {

class NetEngine {
 public:
  struct Device {
    NetPlugin::Device properties;
    int carriers = 0;
    int connections = 0;
  };

  // Initializes the first usable plugin of the list.
  static Result<std::shared_ptr<NetEngine>> make(const NetPluginOptions& options);
  ~NetEngine();
  NetEngine(const NetEngine&) = delete;
  NetEngine& operator=(const NetEngine&) = delete;

  // Calls of the plugin for this communicator require the lock, because plugins need not support concurrent calls of
  // one communicator. The lock also protects the counters of devices.
  std::mutex& mutex() { return mutex_; }
  const NetPlugin& plugin() const { return plugin_; }
  const NetPlugin::Context& context() const { return context_; }
  // Returns the usable devices: the fastest ones.
  const std::vector<Device>& devices() const { return devices_; }
  // False in forked children, which must not use or release objects of their parent, nor the lock, which a thread of
  // the parent may have held.
  bool of_this_process() const;
  // Returns the device for another carrier: the one with fewest carriers.
  Device& next_device();

 private:
  NetEngine(const NetPlugin& plugin, const NetPlugin::Context& context);
  static Result<std::shared_ptr<NetEngine>> make_with(const std::string& name, const NetPluginOptions& options);
  Status find_devices(std::uint32_t first);

  const NetPlugin& plugin_;
  const NetPlugin::Context context_;
  std::uint32_t forks_;  // Before the plugin was initialized.
  std::vector<Device> devices_;
  std::mutex mutex_;
};

}  // namespace tutti
