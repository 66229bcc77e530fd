#include "transports/net_plugin/plugin.h"

#include <strings.h>

#include <array>
#include <cstdarg>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>

#include "src/base/log.h"
#include "src/base/plugin_log.h"

namespace tutti {
namespace {

using namespace nccl_net;  // NOLINT(google-build-using-namespace): names of one header of ours.

constexpr std::size_t kMaxBytesOfV8 = std::size_t{1} << 30;

void log_for_net_plugin(std::int32_t level, unsigned long, const char*, std::int32_t, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  log_for_plugin("network plugin", level, format, arguments);
  va_end(arguments);
}

nccl_net::Code ignore_event(void**, std::int32_t, void*, std::int64_t, void*) { return kSuccess; }

std::string code_text(nccl_net::Code code) {
  constexpr const char* kNames[] = {"ncclSuccess",       "ncclUnhandledCudaError", "ncclSystemError",
                                    "ncclInternalError", "ncclInvalidArgument",    "ncclInvalidUsage",
                                    "ncclRemoteError",   "ncclInProgress"};
  const bool known = code >= 0 && static_cast<std::size_t>(code) < std::size(kNames);
  return std::to_string(code) + " (" + (known ? kNames[code] : "unknown code") + ")";
}

template <typename Type>
Type as(Function function) {
  return reinterpret_cast<Type>(function);
}

// Protects the plugins of the process and their initialization.
std::mutex& mutex_of_process() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

}  // namespace

std::vector<std::string> files_of_net_plugin(const std::string& name) {
  std::vector<std::string> files = {name};
  const bool is_file = name.find('/') != std::string::npos || (name.starts_with("lib") && name.ends_with(".so"));
  if (!is_file) files.push_back("libnccl-net-" + name + ".so");
  return files;
}

// ---- Loading ----

Result<const NetPlugin*> NetPlugin::of_process(const std::string& name) {
  // Never destroyed, because threads outlive static objects.
  static auto& all = *new std::map<std::string, std::unique_ptr<NetPlugin>>;
  const std::lock_guard lock(mutex_of_process());
  const auto found = all.find(name);
  if (found != all.end()) return found->second.get();
  std::unique_ptr<NetPlugin> plugin = TUTTI_TRY(load(name));
  return all.emplace(name, std::move(plugin)).first->second.get();
}

Result<std::unique_ptr<NetPlugin>> NetPlugin::load(const std::string& name) {
  std::string why;
  for (const std::string& file : files_of_net_plugin(name)) {
    Result<Library> library = Library::open(file);
    if (!library.ok()) {
      why += (why.empty() ? "" : "; ") + std::move(library).status().message();
      continue;
    }
    std::unique_ptr<NetPlugin> plugin(new NetPlugin(std::move(library).value()));
    TUTTI_CHECK_OK(plugin->find_table(file));
    log(LogLevel::info, "network plugin %s", plugin->description().c_str());
    return plugin;
  }
  return unsupported("cannot load a network plugin " + name + ": " + why);
}

Status NetPlugin::find_table(const std::string& file) {
  std::string others;
  for (int version = kNewest; version >= kOldest && table_ == nullptr; --version) {
    if (library_.find(("ncclNetPlugin_v" + std::to_string(version)).c_str(), table_)) version_ = version;
  }
  for (int version = 1; version <= kNewest + 8 && table_ == nullptr; ++version) {
    const void* symbol = nullptr;
    if (library_.find(("ncclNetPlugin_v" + std::to_string(version)).c_str(), symbol))
      others += (others.empty() ? "" : ", ") + std::to_string(version);
  }
  if (table_ == nullptr)
    return unsupported(file + " is no network plugin of a supported version: it exports " +
                       (others.empty() ? "no version" : "only " + others) +
                       " of ncclNetPlugin_v8 to ncclNetPlugin_v12");
  const Plugin& all = *table_;
  const std::pair<const char*, bool> needed[] = {{"init", all.init != nullptr},
                                                 {"devices", all.devices != nullptr},
                                                 {"getProperties", all.get_properties != nullptr},
                                                 {"listen", all.listen != nullptr},
                                                 {"connect", all.connect != nullptr},
                                                 {"accept", all.accept != nullptr},
                                                 {"regMr", all.register_memory != nullptr},
                                                 {"deregMr", all.deregister_memory != nullptr},
                                                 {"isend", all.send != nullptr},
                                                 {"irecv", all.receive != nullptr},
                                                 {"test", all.test != nullptr},
                                                 {"closeSend", all.close_sending != nullptr},
                                                 {"closeRecv", all.close_receiving != nullptr},
                                                 {"closeListen", all.close_listening != nullptr}};
  name_ = all.name == nullptr ? "unnamed" : all.name;
  description_ = name_ + " (" + file + ", version " + std::to_string(version_) + ")";
  for (const auto& [function, defined] : needed) {
    if (!defined) return unsupported("network plugin " + description_ + " does not define " + function);
  }
  return {};
}

// ---- Initialization ----

Result<NetPlugin::Context> NetPlugin::initialize(const NetPluginOptions& options) const {
  static auto& initialized = *new std::map<const NetPlugin*, nccl_net::Code>;
  const std::lock_guard lock(mutex_of_process());
  Context context;
  if (options.traffic_class != 0) context.traffic_class = options.traffic_class;
  CommunicatorConfig config = {.traffic_class = context.traffic_class};
  nccl_net::Code code = kSuccess;
  if (version_ >= 11) {
    code = as<Init11>(table_->init)(&context.object, options.communicator, &config, log_for_net_plugin, ignore_event);
  } else if (const auto [entry, is_new] = initialized.try_emplace(this, kSuccess); is_new) {
    code = version_ == 10 ? as<Init10>(table_->init)(log_for_net_plugin, ignore_event)
                          : as<Init8>(table_->init)(log_for_net_plugin);
    if (code != kSuccess) initialized.erase(entry);
  }
  if (code != kSuccess) return error("init", code, "");
  return context;
}

void NetPlugin::finalize(const Context& context) const {
  if (version_ < 11) return;
  const auto end = reinterpret_cast<const Plugin11*>(table_)->finalize;
  const std::lock_guard lock(mutex_of_process());
  const nccl_net::Code code = end == nullptr ? kSuccess : end(context.object);
  if (code != kSuccess) log(LogLevel::warn, "%s", error("finalize", code, "").message().c_str());
}

Result<std::vector<NetPlugin::Device>> NetPlugin::devices() const {
  const std::lock_guard lock(mutex_of_process());
  int count = 0;
  if (const nccl_net::Code code = table_->devices(&count); code != kSuccess) return error("devices", code, "");
  std::vector<Device> all;
  for (int index = 0; index < count; ++index) all.push_back(TUTTI_TRY(device(index)));
  return all;
}

Result<NetPlugin::Device> NetPlugin::device(int index) const {
  // Newer versions of a plugin may write more than the known members.
  alignas(16) std::array<std::byte, 1024> memory = {};
  if (const nccl_net::Code code = table_->get_properties(index, memory.data()); code != kSuccess)
    return error("getProperties", code, " of device " + std::to_string(index));
  const auto read = [&]<typename Properties>(Properties known) {
    std::memcpy(&known, memory.data(), sizeof known);
    Device device;
    device.index = index;
    device.name = known.name == nullptr ? "unnamed" : known.name;
    device.memory_types = known.memory_types;
    device.type = known.device_type;
    device.megabits_per_second = known.megabits_per_second;
    device.max_connections = known.max_connections;
    if constexpr (std::is_same_v<Properties, Properties8>) {
      device.max_message_bytes = kMaxBytesOfV8;
    } else {
      device.max_message_bytes = known.max_message_bytes;
    }
    return device;
  };
  if (version_ == 8) return read(Properties8{});
  return version_ == 12 ? read(Properties12{}) : read(Properties11{});
}

// ---- Calls ----

nccl_net::Code NetPlugin::listen(const Context& context, int device, void* handle, void** listening) const {
  if (version_ >= 11) return as<Listen11>(table_->listen)(context.object, device, handle, listening);
  return as<Listen8>(table_->listen)(device, handle, listening);
}

nccl_net::Code NetPlugin::connect(const Context& context, int device, void* handle, void** sending) const {
  CommunicatorConfig config = {.traffic_class = context.traffic_class};
  void* offload = nullptr;  // Requests no processing by a GPU.
  if (version_ >= 11) return as<Connect11>(table_->connect)(context.object, device, handle, sending, &offload);
  if (version_ == 10) return as<Connect10>(table_->connect)(device, &config, handle, sending, &offload);
  return as<Connect8>(table_->connect)(device, handle, sending, &offload);
}

nccl_net::Code NetPlugin::accept(void* listening, void** receiving) const {
  void* offload = nullptr;
  return table_->accept(listening, receiving, &offload);
}

nccl_net::Code NetPlugin::send(void* sending, void* data, std::size_t bytes, void* registration, void** request) const {
  if (version_ >= 10) return as<Send10>(table_->send)(sending, data, bytes, 0, registration, nullptr, request);
  if (version_ == 9) return as<Send9>(table_->send)(sending, data, bytes, 0, registration, request);
  return as<Send8>(table_->send)(sending, data, static_cast<int>(bytes), 0, registration, request);
}

nccl_net::Code NetPlugin::receive(void* receiving, void* data, std::size_t bytes, void* registration,
                                  void** request) const {
  int tag = 0;
  int bytes_of_v8 = static_cast<int>(bytes);
  void* event = nullptr;
  if (version_ >= 10)
    return as<Receive10>(table_->receive)(receiving, 1, &data, &bytes, &tag, &registration, &event, request);
  if (version_ == 9) return as<Receive9>(table_->receive)(receiving, 1, &data, &bytes, &tag, &registration, request);
  return as<Receive8>(table_->receive)(receiving, 1, &data, &bytes_of_v8, &tag, &registration, request);
}

Status NetPlugin::error(const char* function, nccl_net::Code code, const std::string& where) const {
  constexpr nccl_net::Code kRemoteError = 6;
  return {code == kRemoteError ? tutti::Code::remote : tutti::Code::system,
          "network plugin " + description_ + ": " + function + where + " failed with " + code_text(code)};
}

}  // namespace tutti
