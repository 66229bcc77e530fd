// A loaded network plugin: one interface to the versions of its ABI.
//
// Functions that a plugin may call for several communicators at the same time are thread-safe. Calls that concern one
// communicator must not overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/base/library.h"
#include "src/base/status.h"
#include "transports/net_plugin.h"
#include "transports/net_plugin/abi.h"

namespace tutti {

// File names that NCCL would try for an entry of NCCL_NET_PLUGIN, in this order.
std::vector<std::string> files_of_net_plugin(const std::string& name);

class NetPlugin {
 public:
  struct Device {
    int index = 0;
    std::string name;
    int memory_types = 0;
    int type = 0;
    int megabits_per_second = 0;
    int max_connections = 0;
    std::size_t max_message_bytes = 0;
  };

  // Returns the plugin of this process for an entry of NCCL_NET_PLUGIN. Loads it at the first call and never unloads
  // it.
  static Result<const NetPlugin*> of_process(const std::string& name);

  const std::string& name() const { return name_; }  // The plugin's own name.
  // Returns "AWS Libfabric (libnccl-net-ofi.so, version 10)".
  const std::string& description() const { return description_; }

  // Data of a communicator for calls of the plugin.
  struct Context {
    void* object = nullptr;           // The plugin's own object, from version 11 on.
    std::int32_t traffic_class = -1;  // See nccl_net::CommunicatorConfig.
  };
  // Initializes the plugin: before version 11 once per process, then per communicator.
  Result<Context> initialize(const NetPluginOptions& options) const;
  void finalize(const Context& context) const;
  // Returns all devices. The plugin must be initialized.
  Result<std::vector<Device>> devices() const;

  // The next functions call those of the plugin. Results of null mean that the function must be called again.
  // connect() may change the handle, and gets the same handle in each call.
  nccl_net::Code listen(const Context& context, int device, void* handle, void** listening) const;
  nccl_net::Code connect(const Context& context, int device, void* handle, void** sending) const;
  nccl_net::Code accept(void* listening, void** receiving) const;
  nccl_net::Code send(void* sending, void* data, std::size_t bytes, void* registration, void** request) const;
  nccl_net::Code receive(void* receiving, void* data, std::size_t bytes, void* registration, void** request) const;
  const nccl_net::Plugin& table() const { return *table_; }

  // Returns the error for a call that has failed. `where`: "", or " on device 0 (eth0)".
  Status error(const char* function, nccl_net::Code code, const std::string& where) const;

 private:
  explicit NetPlugin(Library library) : library_(std::move(library)) {}
  static Result<std::unique_ptr<NetPlugin>> load(const std::string& name);
  Status find_table(const std::string& file);
  Result<Device> device(int index) const;

  Library library_;
  const nccl_net::Plugin* table_ = nullptr;
  int version_ = 0;
  std::string name_, description_;
};

}  // namespace tutti
